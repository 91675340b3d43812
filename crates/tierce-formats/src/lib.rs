//! Files of other tools: read as plans, written from plans.
//!
//! [`import`] makes the text of a plan from a file of MAST, SimSo or pyCPA, [`export`] a file from a plan. Each says
//! what the other side does not have: nothing is left out in silence. docs/formats.md has what becomes of what.
//!
//! ```
//! use tierce_formats::{import, Format, Unit};
//! let text = r#"<simulation><sched class="simso.schedulers.EDF"/><caches/>
//!     <processors><processor name="CPU 1" id="1"/></processors>
//!     <tasks><task name="T1" id="1" period="7" WCET="3" deadline="7" abort_on_miss="no"/></tasks></simulation>"#;
//! let imported = import("edf.xml", text, Format::guess("edf.xml", text).unwrap(), Unit::Ms).unwrap();
//! assert!(imported.text.contains(r#"load = { period = "7ms", work = "3ms" }"#));
//! assert!(imported.left_out.is_empty());
//! ```

mod decimal;
mod draft;
mod flat;
mod mast;
mod rt_app;
mod simso;
mod smff;
mod text;
mod xml;

pub use text::LeftOut;

use std::collections::HashSet;
use text::Text;
use tierce_plan::{Faults, Plan};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// XML of SimSo.
    Simso,
    /// Text of MAST.
    Mast,
    /// XML of MAST.
    MastXml,
    /// XML of SMFF, which pyCPA reads.
    Pycpa,
}

/// What one of a file's times is, where the format does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl Unit {
    /// In ns.
    pub fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }
}

/// A text, and what it does not say of the other one.
#[derive(Clone, Debug)]
pub struct Translated {
    /// A plan, or a file of another tool.
    pub text: String,
    /// With lines of the text that was read.
    pub left_out: Vec<LeftOut>,
}

impl Format {
    /// What `text` is by its first element or words.
    pub fn guess(name: &str, text: &str) -> Result<Self, Faults> {
        let text = Text::new(name, text)?;
        let unknown = |at: std::ops::Range<usize>| {
            let fault = text.fault("format_must_be_known", at, "this is no file of a tool that is known");
            let hint =
                "known are XML with `simulation` (SimSo), `MAST_MODEL` (MAST) or `SystemModel` (pyCPA) around all, and MAST's text";
            text.faults(fault.hint(hint))
        };
        // Sections of MAST's text have fields `Name => value`.
        match text.all().trim_start_matches('\u{feff}').trim_start() {
            begin if begin.starts_with('<') => {}
            begin if begin.contains("=>") => return Ok(Self::Mast),
            _ => return Err(unknown(0..0)),
        }
        let document = xml::parse(&text).map_err(|fault| text.faults(fault))?;
        let root = xml::Element::root(&document, &text);
        match root.name() {
            "simulation" => Ok(Self::Simso),
            "MAST_MODEL" => Ok(Self::MastXml),
            "SystemModel" => Ok(Self::Pycpa),
            _ => Err(unknown(root.word().at)),
        }
    }
}

/// The plan that a file is; `name` is the path of the file.
pub fn import(name: &str, text: &str, format: Format, unit: Unit) -> Result<Translated, Faults> {
    let text = Text::new(name, text)?;
    let draft = match format {
        Format::Mast => mast::read_text(&text, unit.ns()),
        Format::Simso | Format::MastXml | Format::Pycpa => xml::parse(&text).and_then(|document| {
            let root = xml::Element::root(&document, &text);
            match format {
                Format::MastXml => mast::read_xml(root, &text, unit.ns()),
                Format::Pycpa => smff::read(root, &text, unit.ns()),
                _ => simso::read(root, &text),
            }
        }),
    };
    let mut draft = draft.map_err(|fault| text.faults(fault))?;
    draft.keep_whole();
    let mut said = HashSet::new();
    draft.left_out.retain(|left| said.insert(left.clone()));
    Ok(Translated { text: draft.text(), left_out: draft.left_out })
}

/// The file that a plan is.
pub fn export(plan: &Plan, format: Format, unit: Unit) -> Result<Translated, Faults> {
    let (text, left_out) = match format {
        Format::Simso => simso::write(plan)?,
        Format::Mast => mast::write_text(plan, unit.ns())?,
        Format::MastXml => mast::write_xml(plan, unit.ns())?,
        Format::Pycpa => smff::write(plan, unit.ns())?,
    };
    Ok(Translated { text, left_out })
}

/// The tasks of a plan as a file of rt-app, which real threads play. (Loads of plans read such files: `load = { rt_app = … }`.)
pub fn export_rt_app(plan: &Plan) -> Result<Translated, Faults> {
    let (text, left_out) = rt_app::write(plan)?;
    Ok(Translated { text, left_out })
}
