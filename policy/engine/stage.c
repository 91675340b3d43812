/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Staged parameters: are they inside their ranges, and do they keep what a node has chosen by name? */

/* Are the staged parameters inside their ranges? */
static inline bool stage_within(u32 index, u64 least, u64 most)
{
	return AT(S.stage, index) >= least && AT(S.stage, index) <= most;
}
#define V(name, kind, least, most, preset, meaning) \
	if (!stage_within(i++, least, most)) \
		return false;
static inline bool stage_fits_node(u32 kind)
{
	u32 i = 0;
	switch (kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: np return i <= TIERCE_NODE_PARAMS;
		TIERCE_POLICY_LIST(P, V)
#undef P
	}
	return kind == TIERCE_TASK && i == 0;
}
static inline bool stage_fits_edge(u32 kind)
{
	u32 i = 0;
	switch (kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: ep return i <= TIERCE_EDGE_PARAMS;
		TIERCE_POLICY_LIST(P, V)
#undef P
	}
	return false;
}
#undef V

/* A choice of a node stays as it is while it has children. */
enum { STAYS_TIME, STAYS_COUNT = 0, STAYS_DURATION_OF = 0, STAYS_RATIO = 0, STAYS_CHOICE = 1 };
#define V(name, kind, least, most, preset, meaning) \
	if (STAYS_##kind && AT(S.stage, i) != (i < TIERCE_PARAMS ? n->param[i] : n->more[i - TIERCE_PARAMS])) \
		return false; \
	i++;
static inline bool stage_keeps_choices(u32 node)
{
	node_t *n = node_at(node);
	u32 i = 0;
	switch (n->kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: np return i <= TIERCE_NODE_PARAMS;
		TIERCE_POLICY_LIST(P, V)
#undef P
	}
	return false;
}
#undef V

static inline int policy_init(u32 node)
{
	int error = TIERCE_OK;
#define CALL(prefix) error = prefix##_init(node)
	DISPATCH(node_at(node)->kind);
#undef CALL
	return error;
}
static inline int policy_attach(u32 edge, u64 now)
{
	int error = TIERCE_OK;
#define CALL(prefix) error = prefix##_attach(edge, now)
	DISPATCH(parent_of(edge)->kind);
#undef CALL
	return error;
}
static inline int policy_set(u32 edge, u64 now)
{
	int error = TIERCE_OK;
#define CALL(prefix) error = prefix##_set(edge, now)
	DISPATCH(parent_of(edge)->kind);
#undef CALL
	return error;
}
static inline void policy_detach(u32 edge)
{
#define CALL(prefix) prefix##_detach(edge)
	DISPATCH(parent_of(edge)->kind);
#undef CALL
}
