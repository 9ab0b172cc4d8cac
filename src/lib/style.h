/* lib/style.h -- styles of text, and the marks for them in a text.
 *
 * In marked text a style begins with the byte MARK and a letter: n(ormal) d(im) b(old) h(ead) r(ed:
 * alarm) w(arning) g(ood) a(ccent) m(atch). Text from a trace is escaped before it is put into
 * marked text. */
#ifndef DYNTRACE_LIB_STYLE_H
#define DYNTRACE_LIB_STYLE_H

enum style {
    STYLE_NORMAL,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_HEAD,
    STYLE_BAR,
    STYLE_ALARM,
    STYLE_WARN,
    STYLE_GOOD,
    STYLE_ACCENT,
    STYLE_MATCH,
    STYLES,
    STYLE_SELECTED = 0x40, /* this bit may be added to any style above: the row is selected */
};

#define MARK "\x01"
/* one letter for each value of enum style; STYLE_BAR has no letter */
#define STYLE_LETTERS "ndbh-rwgam"

#endif
