//! `tierce guarantee`: what follows from a promise of CPU time.

use anyhow::{anyhow, Result};
use clap::Subcommand;
use serde_json::{json, Value};
use std::fmt::Write as _;
use std::process::ExitCode;
use tierce_guarantee::schedulers::{self, Children, Joining, SfqBound};
use tierce_guarantee::{
    cell, derive, weakest, Cell, Derivation, Exact, Faults, Free, Guarantee, Kind, Parameter, Refusal, Wanted,
};

/// Version of the JSON that this command writes.
const VERSION: u32 = 1;

/// Convert guarantees of CPU time into each other, and compute what schedulers provide with them
///
/// A guarantee is a type and its numbers (docs/guarantees.md):
///
///   ALL             the whole CPU
///   RESU r          a slower processor: r of every interval between deadlines that the child announces
///   RESBS x y       x in every period y, at any place in it (basic); RESBH: and no more than x (hard)
///   RESCS x y       x in every window of length y, wherever it begins (continuous); RESCH: and no more
///   RESPS x y z     RESBS, and the chance of z more
///   RESNH x y       one block of x at the same place in every period; RESSH x y z: which begins at z
///   PSBE s δ        at least s·t − δ in every window of length t
///   PS s            the share s in the long run
///   NULL            nothing
///
/// Times have a unit (10ms, 0.5us, 40/3ms), shares are 0.25 or 1/4. All arithmetic is exact.
///
/// Exit codes: 0 it follows, 1 it does not, 2 bad input.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand)]
enum Question {
    Convert(Convert),
    Sfq(Sfq),
    Eevdf(Eevdf),
    Join(Join),
    Schedulers(Schedulers),
    Matrix(Matrix),
}

/// Convert a guarantee into another one, with the derivation
///
/// The first line is the result, then follows why, one theorem per line.
///
///   tierce guarantee convert 'RESCS 10ms 20ms' PSBE             which PSBE is that?
///   tierce guarantee convert 'RESBS 10ms 20ms' 'RESCS 3ms 25ms' does that follow?
///   tierce guarantee convert 'RESBS 10ms 20ms' 'RESCS ? 25ms'   how much of every 25ms?
///   tierce guarantee convert 'PSBE ? 10ms' 'RESCS 5ms 33ms'     which share gives 5ms in 33ms?
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Convert {
    /// What is given; one number may be ?, to be solved for
    #[arg(value_name = "FROM")]
    from: String,
    /// What is wanted: a type, or a type with its numbers, of which one may be ?
    #[arg(value_name = "TO")]
    to: String,
    /// y of the result, where the theorem leaves it open (5.7: any above δ/s; 5.2: 2y − x or more)
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    period: Option<Exact>,
    /// c of Theorem 5.2: how much longer than 2y − x the period of the result is
    #[arg(short = 'c', long, value_name = "TIME", value_parser = time, allow_hyphen_values = true, conflicts_with = "period")]
    stretch: Option<Exact>,
    /// How far apart the deadlines are that the child of a RESU names
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    deadlines: Option<Exact>,
    /// Solve for the number written as ?: the largest amount or share, the smallest period or error that follows; on the
    /// left the least that is enough. A ? alone says so, too
    #[arg(long)]
    best: bool,
    #[arg(long, help = JSON)]
    json: bool,
}

/// How the children's guarantees are printed.
#[derive(clap::Args)]
struct Output {
    /// Also print the derivation of each
    #[arg(long)]
    explain: bool,
    #[arg(long, help = JSON)]
    json: bool,
}

/// The guarantees of the children of a start-time fair queuing scheduler, one line each
///
///   tierce guarantee sfq --supply 'PSBE 1/2 5ms' --quantum 10ms --weights 5,1,1,1,1,1
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Sfq {
    /// What the scheduler is given; anything that can be made PSBE, or else PS
    #[arg(long, value_name = "GUARANTEE", allow_hyphen_values = true)]
    supply: String,
    /// Length of its quantum
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    quantum: Exact,
    /// Weights of its children
    #[arg(long, value_name = "W,…", value_delimiter = ',', required = true, value_parser = number, allow_hyphen_values = true)]
    weights: Vec<Exact>,
    /// The tight sound bound w(Tq + δ) + q, as in `tierce check`, instead of equation 5.2
    #[arg(long)]
    tight: bool,
    #[command(flatten)]
    output: Output,
}

/// The guarantees of the children of an EEVDF scheduler, one line each
///
///   tierce guarantee eevdf --supply ALL --quantum 10ms --shares 15/33,1/4
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Eevdf {
    /// What the scheduler is given: ALL or RESU
    #[arg(long, value_name = "GUARANTEE", allow_hyphen_values = true)]
    supply: String,
    /// Length of its quantum, which is the error
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    quantum: Exact,
    /// Shares of its children
    #[arg(long, value_name = "S,…", value_delimiter = ',', required = true, value_parser = number, allow_hyphen_values = true)]
    shares: Vec<Exact>,
    #[command(flatten)]
    output: Output,
}

/// The guarantees of a child with several parents, one line each
///
///   tierce guarantee join 'RESBH 10ms 20ms' NULL
///   tierce guarantee join 'RESBS 2ms 30ms' 'RESBS 3ms 30ms' --in-phase
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Join {
    /// What its parents give
    #[arg(required = true, value_name = "GUARANTEE")]
    parents: Vec<String>,
    /// The parents are on different CPUs, of which it can use one at a time
    #[arg(long)]
    several_cpus: bool,
    /// Periods of equal length are known to begin together
    #[arg(long)]
    in_phase: bool,
    /// Also add what the parents are sure to supply in any window of that length
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true, conflicts_with = "several_cpus")]
    window: Option<Exact>,
    #[arg(long, help = JSON)]
    json: bool,
}

/// Table 5.1: what schedulers accept and provide
///
///   tierce guarantee schedulers
///   tierce guarantee schedulers sfq --supply 'RESBH 5ms 10ms'   what can it provide with that?
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
struct Schedulers {
    /// One of them
    name: Option<String>,
    /// What it is given
    #[arg(long, value_name = "GUARANTEE", allow_hyphen_values = true, requires = "name")]
    supply: Option<String>,
    /// Its quantum, for Theorem 5.1
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    quantum: Option<Exact>,
    #[arg(long, help = JSON)]
    json: bool,
}

/// Table 5.2: which guarantees can be converted into which, with numbers and reasons
#[derive(clap::Args)]
struct Matrix {
    /// Only the row of this type
    #[arg(value_name = "TYPE", value_parser = kind)]
    from: Option<Kind>,
    #[arg(long, help = JSON)]
    json: bool,
}

const JSON: &str = "Write JSON (documented in docs/guarantees.md)";

fn time(text: &str) -> Result<Exact, String> {
    positive(Parameter::Period, text)
}

fn number(text: &str) -> Result<Exact, String> {
    positive(Parameter::Share, text)
}

fn positive(parameter: Parameter, text: &str) -> Result<Exact, String> {
    let refused =
        |rule: &str, message: &str, bound: &str| format!("{rule}: {message}: {text}, bound {bound}");
    let above_0 = |rule: &str| match rule {
        "number_must_not_be_negative" => "above 0".to_string(),
        "share_must_be_a_fraction" | "share_has_no_unit" | "number_must_be_a_number"
            if parameter == Parameter::Share =>
        {
            "a number above 0".to_string()
        }
        _ => parameter.bound(rule),
    };
    let number = parameter.parse(text).map_err(|(rule, message)| refused(rule, message, &above_0(rule)))?;
    if number == tierce_guarantee::whole(0) {
        return Err(refused("number_must_be_positive", "this must be more", "above 0"));
    }
    Ok(number)
}

fn kind(text: &str) -> Result<Kind, String> {
    let wanted = Wanted::parse(text).map_err(|faults| faults.to_string())?;
    Ok(wanted.kind)
}

/// Run `tierce guarantee`.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.question {
        Question::Convert(args) => convert(&args),
        Question::Sfq(args) => {
            let bound = if args.tight { SfqBound::Tight } else { SfqBound::Paper };
            let supply = guarantee(&args.supply)?;
            let children = schedulers::sfq(&supply, &args.quantum, &args.weights, bound);
            provided(&supply, children, &args.output)
        }
        Question::Eevdf(args) => {
            let supply = guarantee(&args.supply)?;
            let children = schedulers::eevdf(&supply, &args.quantum, &args.shares);
            provided(&supply, children, &args.output)
        }
        Question::Join(args) => join(&args),
        Question::Schedulers(args) => table_5_1(&args),
        Question::Matrix(args) => matrix(&args),
    }
}

fn wanted(text: &str) -> Result<Wanted> {
    Wanted::parse(text).map_err(|faults| pointed_at(text, &faults))
}

fn guarantee(text: &str) -> Result<Guarantee> {
    Guarantee::parse(text).map_err(|faults| pointed_at(text, &faults))
}

/// Each fault below the place in the text that it is about.
fn pointed_at(text: &str, faults: &Faults) -> anyhow::Error {
    let mut shown = format!("guarantee \"{text}\"");
    for fault in &faults.0 {
        let (blanks, arrows) = (" ".repeat(fault.column - 1), "^".repeat(fault.value.chars().count().max(1)));
        let _ = write!(shown, "\n  {text}\n  {blanks}{arrows} {}: {}", fault.rule, fault.message);
        let bound = fault.bound.iter().map(|bound| format!("; allowed: {bound}"));
        let hint = fault.hint.iter().map(|hint| format!("; {hint}"));
        shown.extend(bound.chain(hint));
    }
    anyhow!(shown)
}

fn print(value: &Value) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

fn does_not_follow(refusal: &Refusal, as_json: bool, mut about: Value) -> Result<ExitCode> {
    if as_json {
        about["version"] = VERSION.into();
        about["follows"] = false.into();
        about["rule"] = refusal.rule.into();
        about["reason"] = refusal.reason.clone().into();
        print(&about)?;
    } else {
        println!("It does not follow: {}.\n  rule: {}", refusal.reason, refusal.rule);
    }
    Ok(ExitCode::from(1))
}

fn convert(args: &Convert) -> Result<ExitCode> {
    let (from, to) = (wanted(&args.from)?, wanted(&args.to)?);
    let solve_left = from.full().is_none();
    let open = from.open() + if to.open() == to.values.len() { 0 } else { to.open() };
    anyhow::ensure!(
        !args.best || open == 1,
        "--best solves for one number, written as ?: `tierce guarantee convert --best 'PSBE ? 10ms' 'RESCS 5ms 33ms'`"
    );
    let (period, stretch) = (args.period.clone(), args.stretch.clone());
    let free = Free { period, stretch, deadlines: args.deadlines.clone() };
    let derived = match from.full() {
        Some(source) => derive(&source, &to, &free),
        None => {
            let goal = to
                .full()
                .ok_or_else(|| anyhow!("with a ? on the left, the right has all its numbers: not {to}"))?;
            weakest(&from, &goal, &free)
        }
    };
    let about = json!({ "from": from.to_string(), "to": to.to_string() });
    let derivation = match derived {
        Ok(derivation) => derivation,
        Err(refusal) => return does_not_follow(&refusal, args.json, about),
    };
    let result = if solve_left { &derivation.source } else { derivation.result() };
    if args.json {
        print(&json!({
            "version": VERSION, "from": about["from"], "to": about["to"], "follows": true,
            "result": in_json(result), "derivation": steps_in_json(&derivation),
        }))?;
    } else {
        print!("{result}\n\n{}", shown(&derivation));
    }
    Ok(ExitCode::SUCCESS)
}

/// One theorem per line.
fn shown(derivation: &Derivation) -> String {
    let mut text = format!("given  {}\n", derivation.source.noted());
    let widths = derivation.steps.iter().map(|step| step.to.noted().chars().count());
    let width = widths.max().unwrap_or(0);
    for step in &derivation.steps {
        let to = step.to.noted();
        let _ = writeln!(text, "so     {to:<width$}  {}: {}; {}", step.rule, step.formula, step.because);
    }
    if derivation.steps.is_empty() {
        text.push_str("       which is what is asked for\n");
    }
    text
}

fn provided(supply: &Guarantee, children: Result<Children, Refusal>, output: &Output) -> Result<ExitCode> {
    let children = match children {
        Ok(children) => children,
        Err(refusal) => return does_not_follow(&refusal, output.json, json!({ "supply": in_json(supply) })),
    };
    if output.json {
        let each = children.guarantees.iter().map(in_json).collect::<Vec<_>>();
        print(&json!({
            "version": VERSION, "supply": in_json(supply), "follows": true, "accepted": steps_in_json(&children.accepted),
            "rule": children.rule, "formula": children.formula, "children": each,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for guarantee in &children.guarantees {
        println!("{guarantee}");
    }
    if output.explain {
        for child in 0..children.guarantees.len() {
            print!("\nchild {}\n{}", child + 1, shown(&children.derivation(child)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn join(args: &Join) -> Result<ExitCode> {
    let parents = args.parents.iter().map(|text| guarantee(text)).collect::<Result<Vec<_>>>()?;
    let how = Joining { several_cpus: args.several_cpus, in_phase: args.in_phase };
    let mut joined = match schedulers::join(&parents, how) {
        Ok(joined) => joined,
        Err(refusal) => {
            let parents: Vec<_> = parents.iter().map(in_json).collect();
            return does_not_follow(&refusal, args.json, json!({ "parents": parents }));
        }
    };
    let together = args.window.as_ref().and_then(|window| schedulers::joined_supply(&parents, window));
    joined
        .extend(together.map(|guarantee| schedulers::Joined { guarantee, rule: "sum of supply functions" }));
    if args.json {
        let each = joined.iter().map(|joined| {
            let mut value = in_json(&joined.guarantee);
            value["rule"] = joined.rule.into();
            value
        });
        print(&json!({ "version": VERSION, "follows": true, "guarantees": each.collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = joined.iter().map(|joined| joined.guarantee.to_string().chars().count()).max().unwrap_or(0);
    for joined in joined {
        println!("{:<width$}  {}", joined.guarantee.to_string(), joined.rule);
    }
    Ok(ExitCode::SUCCESS)
}

fn table_5_1(args: &Schedulers) -> Result<ExitCode> {
    let rows: Vec<_> = match &args.name {
        None => schedulers::SCHEDULERS.iter().collect(),
        Some(name) => vec![schedulers::by_name(name).ok_or_else(|| {
            let names: Vec<_> = schedulers::SCHEDULERS.iter().flat_map(|row| row.names).copied().collect();
            anyhow!("scheduler_must_be_known: there is no \"{name}\", but {}", names.join(", "))
        })?],
    };
    if let Some(supply) = &args.supply {
        return accepted(rows[0], &guarantee(supply)?, args);
    }
    let conversions =
        |row: &schedulers::Scheduler| row.conversions.iter().map(ToString::to_string).collect::<Vec<_>>();
    if args.json {
        let rows = rows.iter().map(|row| {
            json!({ "name": row.name(), "names": row.names, "conversions": conversions(row), "note": row.note })
        });
        print(&json!({ "version": VERSION, "schedulers": rows.collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for row in rows {
        let text =
            if row.conversions.is_empty() { row.note.to_string() } else { conversions(row).join(", ") };
        let note = if row.conversions.is_empty() || row.note.is_empty() {
            String::new()
        } else {
            format!("  ({})", row.note)
        };
        println!("{:<18} {text}{note}", row.names.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

fn accepted(row: &schedulers::Scheduler, supply: &Guarantee, args: &Schedulers) -> Result<ExitCode> {
    if row.name() == "join" {
        anyhow::bail!("what a join provides depends on all its parents: see `tierce guarantee join --help`");
    }
    let about = json!({ "scheduler": row.name(), "supply": in_json(supply) });
    let accepted = match row.accept(supply, args.quantum.as_ref()) {
        Ok(accepted) => accepted,
        Err(refusals) => {
            let reasons: Vec<_> = refusals.iter().map(|refusal| refusal.reason.clone()).collect();
            let refusal = Refusal { rule: "not acceptable", reason: reasons.join("; and ") };
            return does_not_follow(&refusal, args.json, about);
        }
    };
    if args.json {
        let each = accepted.iter().map(|accepted| {
            json!({ "conversion": accepted.conversion.to_string(), "derivation": steps_in_json(&accepted.derivation) })
        });
        print(&json!({
            "version": VERSION, "scheduler": about["scheduler"], "supply": about["supply"], "follows": true,
            "accepted": each.collect::<Vec<_>>(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (index, accepted) in accepted.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        print!("{gap}{}\n{}", accepted.conversion, shown(&accepted.derivation));
    }
    Ok(ExitCode::SUCCESS)
}

fn matrix(args: &Matrix) -> Result<ExitCode> {
    let rows: Vec<_> = args.from.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    if args.json {
        let cells: Vec<_> =
            rows.iter().flat_map(|from| Kind::ALL.map(|to| cell_in_json(*from, to))).collect();
        print(&json!({ "version": VERSION, "cells": cells }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let line = |name: &str, marks: Vec<String>| {
        let marks: String = marks.iter().map(|mark| format!(" {mark:<6}")).collect();
        println!("{}", format!("{name:<6}{marks}").trim_end());
    };
    line("", Kind::ALL.map(|to| to.to_string()).to_vec());
    for from in &rows {
        line(from.name(), Kind::ALL.map(|to| mark(*from, to)).to_vec());
    }
    println!("\nt: the type on the left can be rewritten as the one above, f: it cannot, whatever the numbers. x amount,");
    println!("y period, z overrun or phase, s share, δ error; the number is that of the theorem.");
    for from in rows {
        println!("\n{}", from.form());
        for to in Kind::ALL {
            match cell(from, to) {
                Cell::Feasible { formula, free, rule, because } => {
                    let free = if free.is_empty() { String::new() } else { format!(", {free}") };
                    println!("  t {:<26} {rule}: {because}{free}", formula);
                }
                Cell::Infeasible(refusal) => {
                    println!("  f {:<26} {}: {}", to.form(), refusal.rule, refusal.reason)
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// "t 5.2"
fn mark(from: Kind, to: Kind) -> String {
    let (mark, rule) = match cell(from, to) {
        Cell::Feasible { rule, .. } => ("t", rule),
        Cell::Infeasible(refusal) => ("f", refusal.rule),
    };
    match rule.strip_prefix("Theorem ") {
        Some(number) => format!("{mark} {number}"),
        None => mark.to_string(),
    }
}

fn cell_in_json(from: Kind, to: Kind) -> Value {
    match cell(from, to) {
        Cell::Feasible { formula, free, rule, because } => json!({
            "from": from.form(), "to": to.form(), "feasible": true,
            "formula": formula, "free": free, "rule": rule, "because": because,
        }),
        Cell::Infeasible(refusal) => json!({
            "from": from.form(), "to": to.form(), "feasible": false,
            "rule": refusal.rule, "because": refusal.reason,
        }),
    }
}

/// Times that are whole nanoseconds are numbers, others and shares are fractions in text.
fn in_json(guarantee: &Guarantee) -> Value {
    let mut value = json!({ "text": guarantee.to_string(), "type": guarantee.kind().name() });
    for (parameter, number) in guarantee.kind().parameters().iter().zip(guarantee.values()) {
        let unit = if parameter.is_time() { "_ns" } else { "" };
        let text = number.to_string();
        let whole = text.parse::<u64>().ok().filter(|_| parameter.is_time());
        value[format!("{}{unit}", parameter.name())] = whole.map_or(text.into(), Value::from);
    }
    value
}

fn steps_in_json(derivation: &Derivation) -> Value {
    let steps = derivation.steps.iter().map(|step| {
        json!({
            "from": in_json(&step.from), "to": in_json(&step.to), "rule": step.rule, "formula": step.formula,
            "because": step.because,
        })
    });
    steps.collect()
}
