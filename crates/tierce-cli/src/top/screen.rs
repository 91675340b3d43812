//! The screen: a line for each CPU, the tree, the history of the marked row, the keys. What does not fit is left out from the right.

use super::model::{Model, Row};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row as TableRow, Sparkline, Table, TableState};
use ratatui::Frame;
use tierce_plan::show_time;
use tierce_trace::snapshot::{Cpu, Kind, Running};
use tierce_trace::units;

/// How it is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// `NO_COLOR` is not set.
    pub color: bool,
}

impl Look {
    fn color(self, color: Color) -> Style {
        if self.color {
            Style::new().fg(color)
        } else {
            Style::new()
        }
    }
}

/// From this width on, columns are there.
const WIDE: u16 = 72;
const MIDDLE: u16 = 52;

const KEYS: [(&str, &str); 9] = [
    ("q", "quit"),
    ("↑ ↓", "mark a part"),
    ("Enter", "its history"),
    ("s", "sort by: tree, share, not kept, throttled, missed, name"),
    ("/", "show only names with …; Esc: all"),
    ("t", "threads one by one"),
    ("Space", "pause"),
    ("?", "these keys"),
    ("", "received: in % of a CPU, in the last window. A bar [ ] is full when the whole budget was received"),
];

/// Draw all of it.
pub fn draw(frame: &mut Frame, model: &Model, look: Look) {
    let area = frame.area();
    let cpus = cpu_lines(model, area, look);
    let detail = if model.detail && area.height >= 16 { 8 } else { 0 };
    let [title, on_cpus, tree, history, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(cpus.len() as u16),
        Constraint::Min(1),
        Constraint::Length(detail),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(headline(model, area.width, look), title);
    frame.render_widget(Paragraph::new(cpus), on_cpus);
    draw_tree(frame, tree, model, look);
    if detail > 0 {
        draw_history(frame, history, model, look);
    }
    frame.render_widget(footer(model, area.width), keys);
    if model.help {
        draw_help(frame, area);
    }
}

fn headline(model: &Model, width: u16, look: Look) -> Paragraph<'static> {
    let view = &model.view;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut spans = vec![Span::styled(view.plan.clone(), bold)];
    spans.push(format!("  {}", units::time(view.elapsed_ns)).into());
    if width >= MIDDLE {
        spans.push(format!("  window {}", units::time(view.window_ns)).into());
    }
    if view.lost > 0 {
        spans.push(Span::styled(format!("  {} records lost", view.lost), look.color(Color::Red)));
    }
    if model.ended {
        spans.push(Span::styled("  ended", look.color(Color::Yellow).add_modifier(Modifier::REVERSED)));
    } else if model.paused {
        spans.push(Span::styled("  paused", look.color(Color::Yellow).add_modifier(Modifier::REVERSED)));
    }
    Paragraph::new(Line::from(spans))
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// A bar of so many columns: eighths of a block, then dots.
fn bar(part: f64, width: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * (width * 8) as f64).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        text.push(['▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8 - 1]);
    }
    let missing = width - text.chars().count();
    format!("{text}{}", "·".repeat(missing))
}

fn who(runs: Option<&Running>) -> String {
    let Some(Running { part, comm, tid, .. }) = runs else { return "idle".into() };
    let thread = match (comm, tid) {
        (Some(comm), Some(tid)) if comm != part => format!(" ({tid} {comm})"),
        (_, Some(tid)) => format!(" ({tid})"),
        (Some(comm), None) if comm != part => format!(" ({comm})"),
        _ => String::new(),
    };
    format!("{part}{thread}")
}

fn cpu_lines(model: &Model, area: Rect, look: Look) -> Vec<Line<'static>> {
    let (cpus, window_ns) = (&model.view.cpus, model.view.window_ns.max(1) as f64);
    let share = |ns: u64| ns as f64 / window_ns;
    let most = usize::from(area.height / 4).max(1);
    let cut = |text: String, width: usize| text.chars().take(width).collect::<String>();
    if cpus.len() <= most {
        let line = |cpu: &Cpu| {
            let width = if area.width >= MIDDLE { 20 } else { 8 };
            let used = format!("cpu{:<3}", cpu.cpu);
            let mut spans = vec![
                Span::raw(used),
                Span::styled(format!("[{}]", bar(share(cpu.used_ns), width)), look.color(Color::Green)),
                Span::raw(format!(" {:>5} %", percent(share(cpu.used_ns)))),
            ];
            if area.width >= WIDE {
                spans.push(Span::styled(
                    format!("  stolen {:>4} %", percent(share(cpu.stolen_ns))),
                    look.color(if share(cpu.stolen_ns) > 0.05 { Color::Red } else { Color::Reset }),
                ));
            }
            spans.push(Span::raw(format!("  {}", who(cpu.runs.as_ref()))));
            Line::from(spans)
        };
        return cpus.iter().map(line).collect();
    }
    // Several in a line.
    let cell = 20;
    let each = usize::from(area.width / cell).max(1);
    let text = |cpu: &Cpu| {
        let runs = cpu.runs.as_ref().map_or("idle", |runs| &runs.part);
        let text = format!("{:>3} {:>3.0}% {runs}", cpu.cpu, share(cpu.used_ns) * 100.0);
        format!("{:<width$}", cut(text, 18), width = usize::from(cell))
    };
    let mut lines: Vec<Line> =
        cpus.chunks(each).map(|chunk| Line::from(chunk.iter().map(text).collect::<String>())).collect();
    if lines.len() > most {
        let left = cpus.len() - (most - 1) * each;
        lines.truncate(most - 1);
        lines.push(format!("and {left} CPUs more").into());
    }
    lines
}

fn label(row: &Row, flat: bool) -> String {
    let indent = if flat { String::new() } else { "  ".repeat(row.depth) };
    let rest = match (row.kind, row.threads, row.tid) {
        (Kind::Set | Kind::Others, Some(threads), _) => format!(" ×{threads}"),
        (_, _, Some(tid)) => format!(" ({tid})"),
        _ => String::new(),
    };
    format!("{indent}{}{rest}", row.name)
}

/// Of the budget, in brackets; without a budget, of a CPU.
fn row_bar(row: &Row, window_ns: u64, width: usize) -> String {
    match row.promised() {
        Some(promised) if promised > 0.0 => {
            format!("[{}]", bar(row.share(window_ns) / promised, width - 2))
        }
        _ => {
            let filled = (row.share(window_ns).clamp(0.0, 1.0) * width as f64).round() as usize;
            "▒".repeat(filled)
        }
    }
}

fn count(count: u64) -> String {
    match count {
        0 => "-".into(),
        1..100_000 => count.to_string(),
        _ => format!("{}k", count / 1000),
    }
}

fn draw_tree(frame: &mut Frame, area: Rect, model: &Model, look: Look) {
    let (rows, window_ns) = (model.rows(), model.view.window_ns);
    let width = match area.width {
        WIDE.. => 14 + area.width.saturating_sub(80) / 3 * 2, // wider terminals have longer bars, and longer names
        MIDDLE.. => 10,
        _ => 8,
    };
    let names = ["part", "", "share", "of", "unkept", "throt", "miss", "on"];
    let widths = [0, width, 6, 6, 6, 6, 5, 4];
    let shown = match area.width {
        WIDE.. => 8,
        MIDDLE.. => 6,
        _ => 3,
    };
    let right = |text: String, column: usize| {
        Cell::from(format!("{text:>width$}", width = usize::from(widths[column])))
    };
    let title = |at: usize| match at {
        0 | 1 => Cell::from(names[at]),
        _ => right(names[at].into(), at),
    };
    let header = TableRow::new((0..shown).map(title)).style(Style::new().add_modifier(Modifier::BOLD));
    let line = |row: &&Row| {
        let alarm = |is: bool, color| if is { look.color(color) } else { Style::new() };
        let (not_kept, misses) = (row.not_kept(), row.window.threads.misses);
        let on = match row.on.iter().map(u32::to_string).collect::<Vec<_>>().join(",") {
            on if on.len() <= 4 => on,
            _ => format!("×{}", row.on.len()),
        };
        let kind = if row.kind == Kind::Node { look.color(Color::Cyan) } else { Style::new() };
        let bar_color = if not_kept > 0 { Color::Red } else { Color::Green };
        let cells = [
            Cell::from(label(row, model.sort != Default::default())).style(kind),
            Cell::from(row_bar(row, window_ns, usize::from(width))).style(look.color(bar_color)),
            right(percent(row.share(window_ns)), 2),
            right(row.promised().map_or("-".into(), percent), 3),
            right(count(not_kept), 4).style(alarm(not_kept > 0, Color::Red)),
            right(count(row.window.edge.throttles), 5)
                .style(alarm(row.window.edge.throttles > 0, Color::Yellow)),
            right(count(misses), 6).style(alarm(misses > 0, Color::Red)),
            right(on, 7),
        ];
        TableRow::new(cells.into_iter().take(shown))
    };
    let constraints = widths.iter().take(shown).enumerate().map(|(at, width)| match at {
        0 => Constraint::Min(8),
        _ => Constraint::Length(*width),
    });
    let table = Table::new(rows.iter().map(line), constraints)
        .header(header)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected((!rows.is_empty()).then_some(model.selected));
    frame.render_stateful_widget(table, area, &mut state);
}

fn draw_history(frame: &mut Frame, area: Rect, model: &Model, look: Look) {
    let Some((row, shares)) = model.marked() else { return };
    let most = shares.iter().copied().fold(0.0, f64::max);
    let least = shares.iter().copied().fold(f64::MAX, f64::min);
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let title = format!(
        "{} below {}: share {} to {} %, mean {}",
        row.name,
        row.parent,
        percent(least),
        percent(most),
        percent(mean)
    );
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let total = &row.total;
    let budget = match (total.edge.budget_ns, total.edge.period_ns) {
        (Some(budget), Some(period)) => format!("{} in {}, ", show_time(budget), show_time(period)),
        _ => String::new(),
    };
    let promise = total.edge.promise.map_or(String::new(), |promise| {
        let why = promise.why.map_or(String::new(), |why| format!(", {}", why.name()));
        format!(
            ", promised {}, received of that {}, {} of {} windows not kept{why}",
            units::time(promise.promised_ns),
            units::time(promise.received_ns),
            promise.not_kept,
            promise.windows
        )
    });
    let text = format!(
        "{budget}received {}, throttled {}, {} jobs, {} missed{promise}",
        units::time(total.edge.supply_ns),
        total.edge.throttles,
        total.threads.jobs,
        total.threads.misses
    );
    let [graph, words] = Layout::vertical([Constraint::Min(1), Constraint::Length(2)]).areas(inner);
    let skip = shares.len().saturating_sub(usize::from(graph.width));
    let full = row.promised().unwrap_or(1.0).max(most);
    let data: Vec<u64> = shares[skip..].iter().map(|share| (share / full * 1000.0).round() as u64).collect();
    frame.render_widget(Sparkline::default().data(data).max(1000).style(look.color(Color::Green)), graph);
    frame.render_widget(Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true }), words);
}

fn footer(model: &Model, width: u16) -> Paragraph<'static> {
    let text = match (model.typing, &model.filter[..]) {
        (true, filter) => format!("/{filter}_   Enter: keep, Esc: show all"),
        (false, filter) => {
            let filter = if filter.is_empty() { String::new() } else { format!(" {filter}") };
            let sort = model.sort.name();
            match width {
                WIDE.. => format!(
                    "q quit  s sort:{sort}  / filter{filter}  Enter history  t threads  Space pause  ? help"
                ),
                MIDDLE.. => format!("q quit  s {sort}  /{filter} filter  Enter history  ? help"),
                _ => format!("q quit  s {sort}  /{filter}  ? help"),
            }
        }
    };
    Paragraph::new(text).style(Style::new().add_modifier(Modifier::DIM))
}

fn draw_help(frame: &mut Frame, area: Rect) {
    let lines: Vec<Line> = KEYS.iter().map(|(key, what)| Line::from(format!("{key:<7}{what}"))).collect();
    let width = area.width.saturating_sub(4).min(70);
    let height = (KEYS.len() as u16 + if width < 60 { 7 } else { 3 }).min(area.height);
    let place = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, place);
    let text = Paragraph::new(lines).wrap(ratatui::widgets::Wrap { trim: false });
    frame.render_widget(text.block(Block::bordered().title("keys")), place);
}
