//! Who has which copy of a node that the plan has once for each user or cgroup (`for_each`).
//!
//! A copy belongs to a user or a cgroup from the first thread on that matches below it. It is free again when none of these threads is there
//! any more, but stays with its owner until another one needs it: who comes back finds it.

use std::collections::{BTreeMap, HashMap};
use tierce_plan::{By, Copied, ForEach, Plan, Thread};

/// The copies that belong to somebody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    /// By the name of the node: what its copies are for, and who has which.
    owners: HashMap<String, (By, BTreeMap<String, u32>)>,
}

impl Copies {
    /// The entry for a thread that fits the entry of the first copy. An error says why there is none. `is_used`: whether a copy has threads.
    pub fn entry(
        &mut self,
        plan: &Plan,
        entry: usize,
        thread: &Thread,
        is_used: impl Fn(Copied) -> bool,
    ) -> Result<usize, String> {
        let Some(Copied { of, .. }) = plan.entries[entry].copy else { return Ok(entry) };
        let node = &plan.for_each[of];
        let pattern = plan.fit(entry, thread).and_then(|fit| plan.entries[entry].any[fit.at].cgroup.as_ref());
        let whose = node.by.whose(thread, pattern);
        let (_, owners) = self.owners.entry(node.name.clone()).or_insert((node.by, BTreeMap::new()));
        let index = match owners.get(&whose) {
            Some(index) => *index,
            None => {
                let is_owned = |index: &u32| owners.values().any(|owned| owned == index);
                let is_free = |index: &u32| !is_used(Copied { of, index: *index });
                let never = (0..node.most).find(|index| !is_owned(index) && is_free(index));
                let index = never.or_else(|| (0..node.most).find(is_free)).ok_or_else(|| none_left(node))?;
                owners.retain(|_, owned| *owned != index);
                owners.insert(whose, index);
                index
            }
        };
        Ok(entry + index as usize)
    }

    /// Another plan is in force: nodes that it has, too, keep the owners of their copies.
    pub fn keep(&mut self, plan: &Plan) {
        self.owners.retain(|name, (by, owners)| {
            let node = plan.for_each.iter().find(|node| node.name == *name && node.by == *by);
            node.inspect(|node| owners.retain(|_, index| *index < node.most)).is_some()
        });
    }

    /// Each copy that belongs to somebody: its name, what it is for, and whose it is.
    pub fn owned(&self, plan: &Plan) -> Vec<(String, By, String)> {
        let mut list = Vec::new();
        for (of, node) in plan.for_each.iter().enumerate() {
            let Some((by, owners)) = self.owners.get(&node.name) else { continue };
            let mut owners: Vec<_> = owners.iter().map(|(whose, index)| (*index, whose)).collect();
            owners.sort_unstable();
            let name = |index| Copied { of, index }.name(&node.name);
            list.extend(owners.into_iter().map(|(index, whose)| (name(index), *by, whose.clone())));
        }
        list
    }
}

fn none_left(node: &ForEach) -> String {
    let what = match node.by {
        By::Uid => "users",
        By::Cgroup => "cgroups",
    };
    format!(
        "`{}` is there for {} {what}, and all copies have threads (`most` says how many)",
        node.name, node.most
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const PLAN: &str = "[node.top]\npolicy = \"fair\"\ncpu = 0\n\
        [node.user]\npolicy = \"fair\"\nfor_each = \"uid\"\nmost = 2\nunder.top = {}\n\
        [tasks.session]\nunder.user = {}\nmatch = { uid = { min = 1000, max = 59999 } }\n";

    fn user(uid: u32) -> Thread {
        Thread { uid, real_uid: uid, ..Thread::default() }
    }

    fn plan(text: &str) -> Plan {
        use tierce_admission::PlanExt;
        Plan::parse(text, "copies.toml").unwrap()
    }

    #[test]
    fn each_user_has_one_and_a_free_one_goes_to_the_next() {
        let plan = plan(PLAN);
        let (mut copies, mut used) = (Copies::default(), HashSet::new());
        let ask = |copies: &mut Copies, used: &HashSet<u32>, uid| {
            let entry = plan.entry_of(&user(uid)).unwrap();
            copies.entry(&plan, entry, &user(uid), |copy| used.contains(&copy.index))
        };
        assert_eq!(plan.entry_of(&user(0)), None, "no user of the range");
        assert_eq!(ask(&mut copies, &used, 1000), Ok(0));
        used.insert(0);
        assert_eq!(ask(&mut copies, &used, 1001), Ok(1));
        used.insert(1);
        assert_eq!(ask(&mut copies, &used, 1000), Ok(0), "the same user the same copy");
        let why = ask(&mut copies, &used, 1002).unwrap_err();
        assert!(why.contains("2 users"), "{why}");
        used.remove(&0);
        assert_eq!(ask(&mut copies, &used, 1000), Ok(0), "it is still theirs");
        assert_eq!(ask(&mut copies, &used, 1002), Ok(0), "until somebody needs it");
        let owned = copies.owned(&plan);
        let owned: Vec<_> = owned.iter().map(|(name, _, whose)| (name.as_str(), whose.as_str())).collect();
        assert_eq!(owned, [("user#0", "1002"), ("user#1", "1001")]);
    }

    #[test]
    fn another_plan_keeps_what_it_has_too() {
        let before = plan(PLAN);
        let mut copies = Copies::default();
        for (index, uid) in [1000, 1001].into_iter().enumerate() {
            let its = copies.entry(&before, 0, &user(uid), |copy| (copy.index as usize) < index);
            assert_eq!(its, Ok(index));
        }
        let names =
            |copies: &Copies, plan| copies.owned(plan).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
        let fewer = plan(&PLAN.replace("most = 2", "most = 1"));
        copies.keep(&fewer);
        assert_eq!(names(&copies, &fewer), ["user#0"]);
        let other = plan(&PLAN.replace("\"uid\"", "\"cgroup\""));
        copies.keep(&other);
        assert!(names(&copies, &other).is_empty(), "they are for something else");
    }
}
