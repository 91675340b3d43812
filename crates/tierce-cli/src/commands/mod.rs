//! One file per subcommand. Each has its arguments (a clap `Args`) and `run`, which returns the exit code: 0 holds or
//! done, 1 does not hold, 2 bad input or environment (an `Err` is printed and becomes 2).

mod analyse;
mod apply;
pub(crate) mod beside;
mod calibrate;
mod check;
mod ctl;
mod demo_table;
mod design;
mod doctor;
mod embed;
mod export;
mod gen;
mod guarantee;
mod hartstone;
mod import;
mod job;
mod manager;
mod measure;
mod picture;
mod place;
pub mod policy;
mod progress;
mod recording;
mod request;
mod run;
mod scenario;
mod schema;
mod sim;
mod split;
mod status;
mod sweep;
pub mod time;
mod timeline;
mod top;
mod trace;
mod upgrade_plan;
mod vm;
mod whole_file;

use std::process::ExitCode;

/// What `tierce` can do.
#[derive(clap::Subcommand)]
pub enum Command {
    Check(check::Args),
    Sim(sim::Args),
    Run(run::Args),
    Apply(apply::Args),
    Ctl(ctl::Args),
    Manager(manager::Args),
    Request(request::Args),
    Status(status::Args),
    Top(top::Args),
    Doctor(doctor::Args),
    Vm(vm::Args),
    Trace(trace::Args),
    Timeline(timeline::Args),
    Measure(measure::Args),
    Job(job::Args),
    Calibrate(calibrate::Args),
    Guarantee(guarantee::Args),
    Analyse(analyse::Args),
    Design(design::Args),
    Split(split::Args),
    Place(place::Args),
    Gen(gen::Args),
    Sweep(sweep::Args),
    Recording(recording::Args),
    Hartstone(hartstone::Args),
    Import(import::Args),
    Export(export::Args),
    Embed(embed::Args),
    Policy(policy::Args),
    Schema(schema::Args),
    UpgradePlan(upgrade_plan::Args),
    #[command(hide = true)]
    DemoTable(demo_table::Args),
    #[command(hide = true)]
    Scenario(scenario::Args),
}

/// Run one subcommand and turn errors into exit code 2.
pub fn run(command: Command) -> ExitCode {
    let result: anyhow::Result<ExitCode> = match command {
        Command::Check(args) => check::run(args),
        Command::Sim(args) => sim::run(args),
        Command::Run(args) => run::run(args),
        Command::Apply(args) => apply::run(args),
        Command::Ctl(args) => ctl::run(args),
        Command::Manager(args) => manager::run(args),
        Command::Request(args) => request::run(args),
        Command::Status(args) => status::run(args),
        Command::Top(args) => top::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Vm(args) => vm::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Timeline(args) => timeline::run(args),
        Command::Measure(args) => measure::run(args),
        Command::Job(args) => job::run(args),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Guarantee(args) => guarantee::run(args),
        Command::Analyse(args) => analyse::run(args),
        Command::Design(args) => design::run(args),
        Command::Split(args) => split::run(args),
        Command::Place(args) => place::run(args),
        Command::Gen(args) => gen::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Recording(args) => recording::run(args),
        Command::Hartstone(args) => hartstone::run(args),
        Command::Import(args) => import::run(args),
        Command::Export(args) => export::run(args),
        Command::Embed(args) => embed::run(args),
        Command::Policy(args) => policy::run(args),
        Command::Schema(args) => schema::run(args),
        Command::UpgradePlan(args) => upgrade_plan::run(args),
        Command::DemoTable(args) => demo_table::run(args),
        Command::Scenario(args) => scenario::run(args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("tierce: {error:#}");
        ExitCode::from(2)
    })
}
