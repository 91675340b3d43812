//! Which CPUs of this machine share a core, a last-level cache, a NUMA node; from /sys.

use std::fs;
use std::path::Path;
use tierce_plan::{Cpus, Near, Topology};

/// Of CPUs 0 to `cpus` - 1. What the machine does not tell is taken for near: all CPUs share it, and no core is shared.
pub fn read(cpus: u32) -> Topology {
    read_from(Path::new("/sys"), cpus)
}

fn read_from(sys: &Path, cpus: u32) -> Topology {
    let all = Cpus::upto(cpus);
    let set = |path: &Path| -> Option<Cpus> {
        let text = fs::read_to_string(path).ok()?;
        let mut set = Cpus::NONE;
        for range in text.trim().split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
            set |= Cpus::upto(last.saturating_add(1)) & !Cpus::upto(first);
        }
        Some(set & all)
    };
    let near = |cpu: u32| {
        let own = Cpus::only(cpu);
        let at = sys.join(format!("devices/system/cpu/cpu{cpu}"));
        let core = set(&at.join("topology/thread_siblings_list")).unwrap_or(own);
        let level = |index: u32| -> Option<u32> {
            fs::read_to_string(at.join(format!("cache/index{index}/level"))).ok()?.trim().parse().ok()
        };
        let last = (0..8).filter(|&index| level(index).is_some()).max_by_key(|&index| level(index));
        let cache = last.and_then(|index| set(&at.join(format!("cache/index{index}/shared_cpu_list"))));
        let nodes = fs::read_dir(&at).into_iter().flatten().flatten();
        let node = nodes.map(|entry| entry.path()).find(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok())
        });
        let memory = node.and_then(|node| set(&node.join("cpulist")));
        Near { core: core | own, cache: cache.unwrap_or(all) | own, memory: memory.unwrap_or(all) | own }
    };
    Topology { near: (0..cpus).map(near).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_tells_and_what_not() {
        let sys = std::env::temp_dir().join(format!("tierce-topology-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let path = sys.join("devices/system/cpu").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("cpu0/topology/thread_siblings_list", "0,2\n");
        put("cpu0/cache/index0/level", "1\n");
        put("cpu0/cache/index0/shared_cpu_list", "0,2\n");
        put("cpu0/cache/index3/level", "3\n");
        put("cpu0/cache/index3/shared_cpu_list", "0-2\n");
        put("cpu0/node1/cpulist", "0-3,8\n");
        let of = |core: u64, cache: u64, memory: u64| {
            let [core, cache, memory] = [core, cache, memory].map(Cpus::from);
            Near { core, cache, memory }
        };
        let topology = read_from(&sys, 4);
        let near = &topology.near;
        fs::remove_dir_all(&sys).unwrap();
        assert_eq!(near[0], of(0b101, 0b111, 0b1111));
        assert_eq!(topology.to_toml(), "{ smt = [[0, 2], [1], [3]], cache = [[0, 1, 2], [3]] }");
        assert_eq!(near[1], of(0b10, 0b1111, 0b1111));
    }
}
