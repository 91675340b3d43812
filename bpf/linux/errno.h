/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What libbpf's usdt.bpf.h uses of the kernel's header: nothing of a kernel is needed to build. */
#ifndef TIERCE_ERRNO_H
#define TIERCE_ERRNO_H

#define ENOENT 2
#define ESRCH  3
#define EINVAL 22

#endif
