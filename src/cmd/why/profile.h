/* cmd/why/profile.h -- the part of `dyntrace why` about a function that was neither compiled nor
 * disabled. */
#ifndef DYNTRACE_CMD_WHY_PROFILE_H
#define DYNTRACE_CMD_WHY_PROFILE_H

#include "trace/page_text.h"
#include "trace/why/why.h"

/* Print how long the function's calls took, the slowest of them, and who called it. */
void why_profile_print(const struct page_text *page, const struct why *why);

#endif
