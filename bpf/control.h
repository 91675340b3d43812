/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the loader asks of the kernel side: one command per call of the syscall program `control`. */
#ifndef TIERCE_CONTROL_H
#define TIERCE_CONTROL_H

enum tierce_command_op { /* numbers below 64: a graph operation, see enum tierce_op */
	COMMAND_LEAF = 64, /* the thread `pid` becomes task `node`; parent edges exist. 0: back to a leaf of the default node */
	COMMAND_LEAF_NEW,  /* a leaf for the thread `pid` under node `a`, parameters in `param`, rank `value` */
	COMMAND_DEFAULT,   /* node `a` is the default node, `param` the parameters of its leaves' edges */
	COMMAND_REAP,	   /* free leaves of dead threads that could not be freed when they died */
	COMMAND_EXERCISE,  /* no scheduler attached: `a` rounds of requests, decisions and releases on a synthetic clock */
};

struct tierce_command {
	u32 op, a, b, pid;
	u64 value, param[4];
	u64 result; /* error, or id */
};

#endif
