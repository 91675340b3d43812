/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* reservation: budgets that are corrected by what is stolen (rule 13). */

/* Between two budgets: what the next one is, by rule 13, and debt of no more than that. It calls nothing, as server_wakes. */
TIERCE_FN int server_corrects(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *node = parent_of(edge);
	u64 period_ns = x->param[RESERVATION_PERIOD], was_ns = x->param[RESERVATION_BUDGET];
	u64 aim_ns = x->reservation.asked_ns + (x->reservation.lost_ns < was_ns ? x->reservation.lost_ns : was_ns);
	u64 kept = SHARE_ONE - (node->param[RESERVATION_GAIN] << 12);
	u64 others = node->sum - x->reservation.share, most_ns = 0, budget_ns;

	if (reservation_cap(node) > others)
		most_ns = scale(period_ns, reservation_cap(node) - others);
	/* C' + G * (aim - C'), rounded towards the aim, which is reached */
	budget_ns = was_ns > aim_ns ? aim_ns + scale(was_ns - aim_ns, kept) : aim_ns - scale(aim_ns - was_ns, kept);
	if (budget_ns > most_ns)
		budget_ns = most_ns;
	if (budget_ns < x->reservation.asked_ns)
		budget_ns = x->reservation.asked_ns;
	x->param[RESERVATION_BUDGET] = budget_ns;
	x->reservation.lost_ns = 0;
	x->reservation.share = reservation_share(budget_ns, period_ns);
	node->sum = others + x->reservation.share;
	if (x->reservation.remaining_ns < -(s64)budget_ns) {
		x->forgiven_ns += (u64)(-(s64)budget_ns - x->reservation.remaining_ns);
		x->reservation.remaining_ns = -(s64)budget_ns;
	}
	return 0;
}
