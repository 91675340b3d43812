//! Load the object and say what the verifier looked at.
fn main() -> anyhow::Result<()> {
    let begun = std::time::Instant::now();
    let kernel = tierce_scx::kernel::Kernel::load(Default::default())?;
    println!("loaded in {:?}", begun.elapsed());
    for (name, count) in kernel.programs() {
        println!("{name} {count}");
    }
    Ok(())
}
