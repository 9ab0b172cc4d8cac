/* lib/style.h -- styles of text, and how text has them marked.
 *
 * In marked text a style begins with the byte MARK and its letter: n(ormal) d(im) b(old) h(ead)
 * r(ed: alarm) w(arning) g(ood) a(ccent) m(atch). What comes from a trace is escaped before it is
 * put into marked text. */
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
    STYLE_SELECTED = 0x40, /* added to one of these */
};

#define MARK "\x01"
#define STYLE_LETTERS "ndbh-rwgam" /* in the order of enum style; no text has STYLE_BAR */

#endif
