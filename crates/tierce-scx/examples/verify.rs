//! Load the object and say what the verifier looked at.
use tierce_scx::object::*;
#[repr(C)]
#[derive(Default, Debug, Clone)]
struct Command { op: u32, a: u32, b: u32, pid: u32, value: u64, param: [u64; 4], result: u64 }
fn main() -> anyhow::Result<()> {
    let mut object = Object::open()?;
    let begun = std::time::Instant::now();
    object.load()?;
    println!("loaded in {:?}", begun.elapsed());
    for (name, count) in object.programs() { println!("{name} {count}"); }
    let control = object.program("control")?;
    let exercise = object.program("exercise")?;
    let run = |fd, op, a, b, value, param| -> anyhow::Result<u64> {
        let mut c = Command { op, a, b, value, param, ..Default::default() };
        call(fd, &mut c)?;
        Ok(c.result)
    };
    let p = [0u64; 4];
    println!("init {}", run(control, 1, 1, 0, 0, p)?);
    let fp = run(control, 10, 2, 0, !0, p)?;
    let res = run(control, 10, 4, 0, !0, p)?;
    let fair = run(control, 10, 5, 0, !0, [3000000, 0, 0, 0])?;
    println!("nodes {fp} {res} {fair}; root {}", run(control, 17, 0, fp as u32, 0, p)?);
    let edge = |a: u64, b: u64, p| -> anyhow::Result<u64> {
        let e = run(control, 13, a as u32, b as u32, 0, [0; 4])?;
        println!("edge {e}: {}", run(control, 14, e as u32, 0, 0, p)?);
        Ok(e)
    };
    edge(fp, res, [2, 0, 0, 0])?;
    edge(fp, fair, [1, 0, 0, 0])?;
    let t: Vec<u64> = (0..3).map(|_| run(control, 10, 1, 1, !0, p).unwrap()).collect();
    edge(res, t[0], [2_000_000, 10_000_000, 10_000_000, 0])?;
    edge(fair, t[1], [100, 0, 0, 0])?;
    edge(fair, t[2], [200, 0, 0, 0])?;
    for &x in &t { println!("request {}", run(exercise, 2, x as u32, 0, 1000, p)?); }
    let mut now = 1000;
    for _ in 0..12 {
        println!("{now}: {}", run(exercise, 5, 0, 0, now, p)?);
        now += 1_000_000;
    }
    Ok(())
}
