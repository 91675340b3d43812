/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Calls of the policies: one chain of comparisons per function of a policy, generated from the list of policies. */

/* CALL(prefix) for the policy of that number. A port that knows which policies its plans use has the others left out: a chain, so
 * that with them go their comparisons. */
#define DISPATCH_CASE(number, prefix, name, flags, np, ep) \
	if (PORT_USES(number) && kind_ == (number)) { \
		CALL(prefix); \
		break; \
	}
#define DISPATCH(kind) \
	do { \
		u32 kind_ = (kind); \
		TIERCE_POLICY_LIST(DISPATCH_CASE, ) \
		PORT_NO_OTHER(); \
	} while (0)

/* What every switch asks each policy on the way: most have less to do than a call costs. */
#define DISPATCHER static inline __attribute__((always_inline))

static inline void policy_request(u32 edge, u32 why, u64 now)
{
#define CALL(prefix) prefix##_request(edge, why, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline void policy_release(u32 edge, u32 why, u64 now)
{
#define CALL(prefix) prefix##_release(edge, why, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
DISPATCHER u32 policy_pick(u32 node, u32 first, u32 running, u64 now)
{
	u32 edge = TIERCE_NONE;
#define CALL(prefix) edge = prefix##_pick(node, first, running, now)
	DISPATCH(node_at(node)->kind);
#undef CALL
	return edge;
}
static inline bool policy_before(u32 a, u32 b, u64 now)
{
	bool before = false;
#define CALL(prefix) before = prefix##_before(a, b, now)
	DISPATCH(edge_at(a)->kind);
#undef CALL
	return before;
}
static inline void policy_grant(u32 edge, u64 now)
{
#define CALL(prefix) prefix##_grant(edge, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline void policy_revoke(u32 edge, u32 why, u64 now)
{
#define CALL(prefix) prefix##_revoke(edge, why, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
/* Revoke and request: its turn is over, and it wants the next one. */
DISPATCHER void policy_return(u32 edge, u64 now)
{
#define CALL(prefix) (prefix##_revoke(edge, TIERCE_BLOCKED, now), prefix##_request(edge, TIERCE_WOKE, now))
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
/* Charge, then revoke: it has blocked. */
DISPATCHER bool policy_leave(u32 edge, u64 ran_ns, u64 now)
{
	bool spent = false;
#define CALL(prefix) (spent = prefix##_charge(edge, ran_ns, now), prefix##_revoke(edge, TIERCE_BLOCKED, now))
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return spent;
}
DISPATCHER bool policy_charge(u32 edge, u64 ran_ns, u64 now)
{
	bool spent = false;
#define CALL(prefix) spent = prefix##_charge(edge, ran_ns, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return spent;
}
static inline bool policy_lose(u32 edge, u64 stolen_ns)
{
	bool pays = false;
#define CALL(prefix) pays = prefix##_lose(edge, stolen_ns)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return pays;
}
/* Grant, then until. */
DISPATCHER u64 policy_begin(u32 edge, u64 now)
{
	u64 until = TIERCE_NEVER;
#define CALL(prefix) (prefix##_grant(edge, now), until = prefix##_until(edge, now))
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return until;
}
DISPATCHER u64 policy_until(u32 edge, u64 now)
{
	u64 until = TIERCE_NEVER;
#define CALL(prefix) until = prefix##_until(edge, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return until;
}
static inline void policy_event(u32 edge, u64 now)
{
#define CALL(prefix) prefix##_event(edge, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline void policy_announce(u32 edge, u64 deadline_ns, u64 now)
{
#define CALL(prefix) prefix##_announce(edge, deadline_ns, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline u64 policy_deadline(u32 node, u64 now)
{
	u64 deadline = TIERCE_NEVER;
#define CALL(prefix) deadline = prefix##_deadline(node, now)
	DISPATCH(node_at(node)->kind);
#undef CALL
	return deadline;
}
static inline int policy_tell(u32 edge, u32 kind, u64 now)
{
	int error = TIERCE_E_not_understood;
#define CALL(prefix) error = prefix##_tell(edge, kind, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return error;
}
/* Does announce() matter to it? May its nodes be spread? Does it give budgets? */
#define P(number, prefix, name, flags, np, ep) \
	if (((flags)&FLAG) && PORT_USES(number) && kind == (number)) \
		return true;
#define FLAG TIERCE_HEEDS_DEADLINES
static inline bool policy_heeds_deadlines(u32 kind)
{
	TIERCE_POLICY_LIST(P, )
	return false;
}
#undef FLAG
#define FLAG TIERCE_SPREADS
static inline bool policy_spreads(u32 kind)
{
	TIERCE_POLICY_LIST(P, )
	return false;
}
#undef FLAG
#define FLAG TIERCE_BUDGETS
static inline bool policy_gives_budgets(u32 kind)
{
	TIERCE_POLICY_LIST(P, )
	return false;
}
#undef FLAG
#undef P
/* Does announce() matter to any? */
#define P(number, prefix, name, flags, np, ep) \
	if (((flags)&TIERCE_HEEDS_DEADLINES) && PORT_USES(number)) \
		return true;
static inline bool deadlines_matter(void)
{
	TIERCE_POLICY_LIST(P, )
	return false;
}
#undef P

/* Where it is not done at every switch: one call for all policies, which a verifier looks at once. */
TIERCE_FN int edge_asks(u32 edge, u32 why, u64 now)
{
	policy_request(edge, why, now);
	return 0;
}
TIERCE_FN int edge_leaves(u32 edge, u32 why, u64 now)
{
	policy_release(edge, why, now);
	return 0;
}

/* Which of the children that wait a CPU takes, where several come to the node. */
TIERCE_FN u32 node_takes(u32 node, u32 first, u32 cpu, u64 now)
{
	u32 edge = first;
#define CALL(prefix) edge = prefix##_first(node, first, cpu, now)
	DISPATCH(node_at(node)->kind);
#undef CALL
	return edge;
}

TIERCE_FN int edge_owes(u32 edge, u64 ran_ns, u64 now)
{
	return policy_charge(edge, ran_ns, now);
}
