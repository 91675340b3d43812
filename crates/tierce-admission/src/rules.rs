//! The rules of a proof: what is compared with what, and what helps where that fails.

/// A rule that a plan without faults may break.
#[derive(Clone, Copy, Debug)]
pub struct ProofRule {
    /// Its name, as a failure has it.
    pub name: &'static str,
    /// What is compared with what.
    pub compared: &'static str,
    /// What makes it hold.
    pub helps: &'static str,
}

const fn rule(name: &'static str, compared: &'static str, helps: &'static str) -> ProofRule {
    ProofRule { name, compared, helps }
}

/// All of them, in the order in which the page has them (docs/plan-language.md).
pub const PROOF_RULES: [ProofRule; 18] = [
    rule(
        "budgets_must_fit_the_cpu",
        "the sum of budget/period of a node's children with one CPU",
        "smaller budgets, longer periods, or another CPU for one of them",
    ),
    rule(
        "budgets_must_fit_the_cap",
        "the same sum with the node's `cap`",
        "smaller budgets, longer periods, or a larger `cap`",
    ),
    rule(
        "budgets_must_fit_the_supply",
        "the same sum with the long-run rate of the node itself",
        "smaller budgets, longer periods, or more for the node from above",
    ),
    rule(
        "budgets_must_fit_every_window",
        "the budgets that are due by their deadlines in a window with its length, on a whole CPU",
        "smaller budgets, or longer deadlines",
    ),
    rule(
        "kept_budgets_must_fit",
        "the same, where a child that sleeps may use a kept budget shortly before its deadline",
        "smaller budgets, or longer deadlines",
    ),
    rule(
        "budget_must_pay_for_a_switch",
        "a budget with the time of one switch (`[machine] costs`)",
        "a budget that is longer than a switch",
    ),
    rule(
        "budgets_must_fit_what_is_left",
        "with `--host`: the budgets that are due in a window with what higher scheduling classes leave of the CPU",
        "smaller budgets, or less work in higher scheduling classes",
    ),
    rule(
        "budgets_are_not_proved",
        "the budgets that are due in a window with the node's guaranteed supply in it",
        "for the node a priority above all that nothing limits, a larger budget or a shorter period; or smaller budgets below it",
    ),
    rule(
        "shares_must_fit_the_cpu",
        "the sum of the shares below a `uniform` node with one CPU",
        "smaller shares",
    ),
    rule(
        "shares_must_fit_the_supply",
        "the same sum with the long-run rate of the node itself",
        "smaller shares, or more for the node from above",
    ),
    rule(
        "deadlines_must_fit_the_supply",
        "the sum of work/period of the jobs below an `edf` node with the long-run rate of the node",
        "less work, longer periods, or more for the node from above",
    ),
    rule(
        "deadlines_must_fit_every_window",
        "the work that is due in a window with its length, on a whole CPU",
        "less work, or longer deadlines",
    ),
    rule(
        "deadlines_must_fit_what_is_promised",
        "the work that is due in a window with the node's guaranteed supply in it",
        "less work, longer deadlines, or a larger budget or a shorter period above the node",
    ),
    rule(
        "windows_must_be_few",
        "the number of windows to be tested with what can be tested: the sum is too close to a CPU",
        "a little less, or periods that divide each other",
    ),
    rule(
        "deadline_can_be_missed",
        "the exact response time of a task with its deadline, or its demand with the long-run rate available to it",
        "less work, a longer deadline, a larger budget, or a higher priority",
    ),
    rule(
        "deadline_is_not_proved",
        "the best bound on the response time of a task with its deadline; there may be none",
        "a reservation for the task, a larger budget, a shorter period of the budget, or `soft = true` in its load",
    ),
    rule(
        "latency_is_not_proved",
        "the bound on the response, reaction or age of a chain with what the chain `needs`; there may be none",
        "more time or less work for the task that takes most of it, a shorter period of a task that reads, or to be released by the task before it",
    ),
    rule(
        "needs_must_follow",
        "what a part `needs` with the guarantee that it receives",
        "a larger budget or a shorter period above it, or a reservation of its own",
    ),
];

/// What helps where that rule is broken.
pub fn what_helps(name: &str) -> Option<&'static str> {
    PROOF_RULES.iter().find(|rule| rule.name == name).map(|rule| rule.helps)
}
