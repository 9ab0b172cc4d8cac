/* cmd/report/picture.h -- collects the pictures and the longest calls of `dyntrace report --html`
 * in one walk over all frames. */
#ifndef DYNTRACE_REPORT_PICTURE_H
#define DYNTRACE_REPORT_PICTURE_H

struct picture;
struct report;

/* Read all frames of REPORT's trace. The caller frees the result with picture_free. */
struct picture *picture_read(struct report *report);
void picture_free(struct picture *picture);

/* picture_make_json: return the data of the timeline and the flame graph as JSON.
 *
 * picture_longest_calls: return the frame_id of the longest call of each code object, the longest
 * first, as a JSON array.
 *
 * The caller frees both. */
char *picture_make_json(struct picture *picture);
char *picture_longest_calls(const struct picture *picture);

#endif
