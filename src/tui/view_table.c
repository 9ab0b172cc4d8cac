/* tui/view_table.c -- tables of all views, and of the parts of pages that C functions make. Views
 * never refer to this file; they get the tables through struct tui. Lists and pages have a file in
 * schemas/tui/. Other views, and the parts of pages, are in tui/views/. */
#include "tui/list.h"
#include "tui/loop.h"
#include "tui/text.h"

#define DECLARE_LIST(...)
#define DECLARE_PAGE(...)
#define DECLARE_OWN(name, ops) extern const struct view_ops ops;
#define X(kind, made, ...) DECLARE_##made(__VA_ARGS__)
VIEWS(X)
#undef X

#define VIEW_LIST(name, summary_)              \
    &(const struct view_ops)                   \
    {                                          \
        .summary = summary_, .base = &list_ops \
    }
#define VIEW_PAGE(name, all_, summary_, ...)                                                 \
    &(const struct view_ops)                                                                 \
    {                                                                                        \
        .all = VIEW_##all_, .summary = summary_, .build = page_build_doc, .base = &text_ops, \
        ##__VA_ARGS__                                                                        \
    }
#define VIEW_OWN(name, ops) &ops
#define X(kind, made, ...) [VIEW_##kind] = VIEW_##made(__VA_ARGS__),
const struct view_ops *const loop_views[VIEW_KINDS] = {VIEWS(X)};
#undef X

#define X(name) {#name, part_##name},
static const struct page_part parts[] = {PAGE_PARTS(X){NULL, NULL}};
#undef X
const struct page_part *const loop_parts = parts;
