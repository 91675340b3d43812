/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* How many leaves the threads of each user have; those of root are not counted. */

/* Who answers for a thread: its user. In user namespaces a user has many numbers; there it is who made the outermost of them, unless
 * that is root. */
#define NAMESPACES 33 /* of which one can lie inside another */
OWN_FRAME u32 user_of(const struct task_struct *p)
{
	const struct cred *cred = BPF_CORE_READ(p, real_cred);
	const struct user_namespace *inner = BPF_CORE_READ(cred, user_ns);
	u32 i, owner, level = BPF_CORE_READ(inner, level);
	for (i = ZERO; level > 1 && i < NAMESPACES && CAN_LOOP; i++) {
		inner = BPF_CORE_READ(inner, parent);
		level--;
	}
	owner = level ? BPF_CORE_READ(inner, owner.val) : 0;
	return owner ? owner : BPF_CORE_READ(cred, uid.val);
}

/* A hash table, twice as large as there are leaves. A slot has the number of a user and, below it, that of his leaves. A user's slot is
 * one of USER_SLOTS in a row, the first of which nobody can guess. A slot without leaves goes to whoever needs one, so a user may have
 * two in the end: both count. A slot that was used is never zero again: no slot of a user lies behind one that is. */
#define USER_SLOTS 64
#define USER_TRIES 64 /* each but the last fails because another CPU was faster */

static inline u32 user_slot(u32 user, u32 i)
{
	return (((user ^ SIDE.users_seed) * 0x9e3779b1u >> 16) + i) & (TIERCE_USERS - 1);
}
/* Where one more leaf is counted, from 1 on; 0: others have leaves in all slots that it may be. */
TIERCE_FN u32 user_place(u32 user)
{
	u32 i, at, free = 0;
	u64 slot;
	for (i = ZERO; i < USER_SLOTS && CAN_LOOP; i++) {
		at = user_slot(user, i);
		slot = AT(SIDE.users, at);
		if (slot >> 32 == user)
			return at + 1;
		if (!free && !(u32)slot)
			free = at + 1;
		if (!slot)
			break;
	}
	return free;
}
/* One leaf more. Returns where it is counted, for user_loses; 0: nowhere. */
TIERCE_FN u32 user_gets(u32 user)
{
	u32 tries, at;
	u64 slot, more;
	for (tries = ZERO; tries < USER_TRIES && CAN_LOOP; tries++) {
		at = user_place(user);
		if (!at)
			break;
		slot = AT(SIDE.users, at - 1);
		more = slot >> 32 == user ? slot + 1 : (u64)user << 32 | 1;
		if (slot >> 32 != user && (u32)slot)
			continue;
		if (__sync_val_compare_and_swap(&AT(SIDE.users, at - 1), slot, more) == slot)
			return at;
	}
	return 0;
}
static inline void user_loses(u32 at)
{
	__sync_fetch_and_sub(&AT(SIDE.users, at - 1), 1);
}

/* Leaves that are left. */
static inline u32 leaves_left(void)
{
	u32 nodes = TIERCE_NODES - S.fresh_node + S.spare_nodes, edges = TIERCE_EDGES - S.fresh_edge + S.spare_edges;
	return nodes < edges ? nodes : edges;
}
/* A user's threads have no more leaves than are left for all others: so one user never takes the last of them, nor do several. Root
 * may. */
TIERCE_FN int user_has_room(u32 user)
{
	u32 i, leaves = 0;
	u64 slot;
	if (!user)
		return 1;
	for (i = ZERO; i < USER_SLOTS && CAN_LOOP; i++) {
		slot = AT(SIDE.users, user_slot(user, i));
		if (slot >> 32 == user)
			leaves += (u32)slot;
		if (!slot)
			break;
	}
	return leaves < leaves_left();
}
