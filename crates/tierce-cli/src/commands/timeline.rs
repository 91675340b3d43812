//! `tierce timeline`: pictures of traces.

use super::time::time;
use super::trace::load;
use super::whole_file;
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tierce_plan::show_time;
use tierce_terminal::Stop;
use tierce_trace::browser::Browser;
use tierce_trace::{grasp, html, perfetto, Trace};

/// Show a trace: an HTML page that works offline, a trace for ui.perfetto.dev or Grasp, a PNG
///
/// With two traces (for example simulated and measured) equal rows are shown together. Without an option, writes an HTML page
/// beside the first trace.
#[derive(clap::Args)]
pub struct Args {
    /// Files of `tierce sim --trace` or `tierce run --trace`.
    #[arg(required = true, num_args = 1..=2, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Write the page here.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a Perfetto trace (of one trace only) here.
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Write a script for Grasp (of one trace only) here.
    #[arg(long, value_name = "FILE")]
    grasp: Option<PathBuf>,
    /// Write a picture of the page here; needs a Chromium.
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Begin and end of the picture, for example 0ms..120ms; the page always has the whole trace.
    #[arg(long, value_name = "FROM..TO", requires = "png", value_parser = parse_span)]
    span: Option<(u64, u64)>,
    /// Width and height of the picture in CSS pixels; the file has twice as many.
    #[arg(long, value_name = "WxH", requires = "png", default_value = "1400x1200", value_parser = parse_size)]
    size: (u32, u32),
    /// A dark picture.
    #[arg(long, requires = "png")]
    dark: bool,
}

/// Write what was asked for and say where it is.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    for (option, given) in [("--perfetto", &args.perfetto), ("--grasp", &args.grasp)] {
        if given.is_some() && args.traces.len() > 1 {
            anyhow::bail!("{option} takes one trace, but {} were given", args.traces.len());
        }
    }
    let stop = Stop::watch();
    let traces = args.traces.iter().map(|path| load(path, &stop)).collect::<anyhow::Result<Vec<_>>>()?;
    let traces: Vec<&Trace> = traces.iter().collect();
    // Whoever ended the reading gets what was read.
    let watched = (!stop.asked()).then_some(&stop);
    let mut whole = true;
    if let Some(path) = &args.perfetto {
        let written = whole_file::write(path, watched, |out| perfetto::write(traces[0], out))?;
        whole &= tell(written, path, ": open it at ui.perfetto.dev");
    }
    if let Some(path) = &args.grasp {
        let written = whole && whole_file::write(path, watched, |out| grasp::write(traces[0], out))?;
        whole &= tell(written, path, "");
    }
    let beside = args.traces[0].with_extension("html");
    let only_others = args.perfetto.is_some() || args.grasp.is_some() || args.png.is_some();
    let page = args.html.or((!only_others).then_some(beside));
    if let Some(path) = &page {
        let written = whole && whole_file::write(path, watched, |out| html::write(&traces, out))?;
        whole &= tell(written, path, "");
    }
    if !whole {
        return Ok(ExitCode::from(1));
    }
    if let Some(png) = &args.png {
        let browser = Browser::find().context("--png needs a Chromium in PATH (Debian package chromium)")?;
        let scratch = std::env::temp_dir().join(format!("tierce-timeline-{}.html", std::process::id()));
        if page.is_none() && !whole_file::write(&scratch, watched, |out| html::write(&traces, out))? {
            return Ok(ExitCode::from(u8::from(!tell(false, png, ""))));
        }
        let theme = if args.dark { "dark" } else { "light" };
        let span = args.span.map(|(from, to)| format!("&from_ns={from}&to_ns={to}")).unwrap_or_default();
        let page = page.as_ref().unwrap_or(&scratch);
        let made = browser.screenshot(page, &format!("whole&theme={theme}{span}"), args.size, png);
        if *page == scratch {
            fs::remove_file(&scratch)?;
        }
        made.with_context(|| png.display().to_string())?;
        println!("{}", png.display());
    }
    Ok(ExitCode::from(u8::from(stop.asked())))
}

/// Where it is, or that it is not there.
fn tell(written: bool, path: &Path, how: &str) -> bool {
    match written {
        true => println!("{}{how}", path.display()),
        false => eprintln!("tierce timeline: ended early; {} is not written", path.display()),
    }
    written
}

fn parse_size(text: &str) -> Result<(u32, u32), String> {
    let size =
        text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    match size {
        Some((width @ 300..=8000, height @ 200..=8000)) => Ok((width, height)),
        Some((width, height)) => Err(format!("{width}x{height} is not within 300x200 and 8000x8000")),
        None => Err("expected a width, an x and a height, for example 1400x1200".into()),
    }
}

fn parse_span(text: &str) -> Result<(u64, u64), String> {
    let (from, to) =
        text.split_once("..").ok_or("expected two times with .. between them, for example 0ms..120ms")?;
    let (from, to) = (time(from)?, time(to)?);
    if from < to {
        Ok((from, to))
    } else {
        Err(format!("it ends ({}) before it begins ({})", show_time(to), show_time(from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_sizes() {
        assert_eq!(parse_span("0ms..120ms"), Ok((0, 120_000_000)));
        assert_eq!(parse_span("5us..1s"), Ok((5_000, 1_000_000_000)));
        for (text, part) in [
            ("5ms", "two times"),
            ("5..6ms", "a time needs a unit"),
            ("9ms..1ms", "ends (1ms) before it begins (9ms)"),
            ("0s..99999999999s", "this long"),
            ("ms..1s", "a decimal number and a unit"),
        ] {
            let error = parse_span(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(parse_size("800x600"), Ok((800, 600)));
        assert!(parse_size("8x6").unwrap_err().contains("8x6 is not within"));
        assert!(parse_size("800").unwrap_err().contains("a width"));
    }
}
