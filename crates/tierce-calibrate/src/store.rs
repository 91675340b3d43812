//! Where profiles are kept: four folders, of which a later one overrides an earlier one.

use crate::identity::opened;
use crate::profile::Profile;
use crate::reading::ProfileError;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use thiserror::Error;

/// Who a profile is from. A later layer overrides an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The maker of the program or of the distribution: `/usr/share/tierce/profiles`.
    Vendor,
    /// The administrator: `/etc/tierce/profiles`.
    System,
    /// Measured on this machine: `/var/lib/tierce/profiles`.
    Machine,
    /// The user: `~/.config/tierce/profiles`.
    User,
}

impl Layer {
    /// All, the weakest first.
    pub const ALL: [Layer; 4] = [Layer::Vendor, Layer::System, Layer::Machine, Layer::User];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Vendor => "vendor",
            Layer::System => "system",
            Layer::Machine => "machine",
            Layer::User => "user",
        }
    }
}

/// Why a profile cannot be had or kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// A file or folder.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// A profile's text.
    #[error("{0}: {1}")]
    Profile(PathBuf, #[source] ProfileError),
    /// A profile that lies where that of another program belongs.
    #[error("profile_must_lie_at_its_program: {file} is the profile of {program}; it belongs at {belongs}")]
    Misplaced {
        /// Where it lies.
        file: PathBuf,
        /// Whose it is.
        program: PathBuf,
        /// Where it belongs.
        belongs: PathBuf,
    },
    /// The home of the user is not known.
    #[error("home_must_be_known: the user's profiles are in ~/.config/tierce/profiles, and neither XDG_CONFIG_HOME nor HOME is set")]
    NoHome,
    /// A program is named by where it is.
    #[error("program_must_be_a_path: a profile belongs to an absolute path of a program: {0}")]
    NoPath(PathBuf),
}

/// A profile and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Who it is from.
    pub layer: Layer,
    /// Where it lies.
    pub file: PathBuf,
    /// What it says.
    pub profile: Profile,
}

/// The folders of profiles. The profile of `/usr/bin/player` is `usr/bin/player.toml` in each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    root: PathBuf,
    user: Option<PathBuf>,
}

impl Store {
    /// Those of this machine and of the user whose environment this is.
    pub fn of_this_machine() -> Store {
        let folder =
            |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        Store { root: "/".into(), user }
    }

    /// Those of a machine whose files are below `root`, and of the user whose configuration is in `user`.
    pub fn at(root: impl Into<PathBuf>, user: Option<PathBuf>) -> Store {
        Store { root: root.into(), user }
    }

    /// The folder of a layer.
    pub fn folder(&self, layer: Layer) -> Result<PathBuf, StoreError> {
        let within = match layer {
            Layer::Vendor => "usr/share/tierce/profiles",
            Layer::System => "etc/tierce/profiles",
            Layer::Machine => "var/lib/tierce/profiles",
            Layer::User => {
                return Ok(self.user.as_ref().ok_or(StoreError::NoHome)?.join("tierce/profiles"));
            }
        };
        Ok(self.root.join(within))
    }

    /// Where the profile of a program is in a layer.
    pub fn file(&self, layer: Layer, program: &Path) -> Result<PathBuf, StoreError> {
        let plain = program.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
        match (program.strip_prefix("/"), program.file_name()) {
            (Ok(below), Some(name)) if plain => {
                let mut name = name.to_os_string();
                name.push(".toml");
                Ok(self.folder(layer)?.join(below).with_file_name(name))
            }
            _ => Err(StoreError::NoPath(program.into())),
        }
    }

    /// The profile of a program, of the strongest layer that has one.
    pub fn find(&self, program: &Path) -> Result<Option<Stored>, StoreError> {
        for layer in Layer::ALL.into_iter().rev().filter(|layer| self.has(*layer)) {
            let file = self.file(layer, program)?;
            if file.exists() {
                let profile = self.read(layer, &file)?;
                return Ok(Some(Stored { layer, file, profile }));
            }
        }
        Ok(None)
    }

    /// All profiles by program, each of the strongest layer that has one; and what is wrong with others.
    pub fn list(&self) -> (Vec<Stored>, Vec<StoreError>) {
        let (mut found, mut wrong): (Vec<Stored>, Vec<StoreError>) = (Vec::new(), Vec::new());
        for layer in Layer::ALL.into_iter().filter(|layer| self.has(*layer)) {
            let files = self.files(layer).unwrap_or_else(|error| {
                wrong.push(error);
                Vec::new()
            });
            for file in files {
                match self.read(layer, &file) {
                    Ok(profile) => {
                        let path = profile.program.executable.path.clone();
                        found.retain(|stored| stored.profile.program.executable.path != path);
                        found.push(Stored { layer, file, profile });
                    }
                    Err(error) => wrong.push(error),
                }
            }
        }
        found.sort_by(|a, b| a.profile.program.executable.path.cmp(&b.profile.program.executable.path));
        (found, wrong)
    }

    /// The files of a layer, in order.
    pub fn files(&self, layer: Layer) -> Result<Vec<PathBuf>, StoreError> {
        let mut files = Vec::new();
        files_below(&self.folder(layer)?, &mut files)?;
        Ok(files)
    }

    /// The profile in a file of a layer.
    pub fn read(&self, layer: Layer, file: &Path) -> Result<Profile, StoreError> {
        let profile = read(file)?;
        self.is_at_its_place(layer, file, &profile)?;
        Ok(profile)
    }

    /// The profiles that hold for one user's processes on a machine whose files are below `root`: root keeps them.
    pub fn of_user(root: &Path, uid: u32) -> Store {
        Store { root: root.into(), user: Some(root.join("var/lib/tierce/users").join(uid.to_string())) }
    }

    /// Keep a profile in a layer, in place of the one there. A reader sees the old one or the new one.
    pub fn keep(&self, layer: Layer, profile: &Profile) -> Result<PathBuf, StoreError> {
        let file = self.file(layer, &profile.program.executable.path)?;
        let failed = |error| StoreError::File(file.clone(), error);
        std::fs::create_dir_all(file.parent().unwrap_or(&self.root)).map_err(failed)?;
        let mut new = file.clone().into_os_string();
        new.push(".new");
        std::fs::write(&new, profile.to_string()).map_err(failed)?;
        std::fs::rename(&new, &file).map_err(failed)?;
        Ok(file)
    }

    fn has(&self, layer: Layer) -> bool {
        layer != Layer::User || self.user.is_some()
    }

    fn is_at_its_place(&self, layer: Layer, file: &Path, profile: &Profile) -> Result<(), StoreError> {
        let program = &profile.program.executable.path;
        let belongs = self.file(layer, program)?;
        match belongs == file {
            true => Ok(()),
            false => Err(StoreError::Misplaced { file: file.into(), program: program.clone(), belongs }),
        }
    }
}

/// Longest text of a profile, bytes.
const TEXT_MAX: u64 = 1 << 20;

/// One that is a pipe, or has no end, holds nobody up.
fn read(file: &Path) -> Result<Profile, StoreError> {
    let failed = |error| StoreError::File(file.into(), error);
    let mut text = String::new();
    let length = opened(file).and_then(|file| file.take(TEXT_MAX + 1).read_to_string(&mut text));
    if length.map_err(failed)? as u64 > TEXT_MAX {
        let message = format!("longer than {TEXT_MAX} bytes");
        return Err(failed(io::Error::new(io::ErrorKind::InvalidData, message)));
    }
    text.parse().map_err(|error| StoreError::Profile(file.into(), error))
}

/// Profiles in a folder and in those below it, in order. A folder that is not there has none.
fn files_below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), StoreError> {
    let failed = |error| StoreError::File(folder.into(), error);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    let found = |entry: io::Result<std::fs::DirEntry>| entry.and_then(|it| Ok((it.path(), it.file_type()?)));
    let mut paths = entries.map(found).collect::<io::Result<Vec<_>>>().map_err(failed)?;
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, kind) in paths {
        // A link to a folder may lead anywhere.
        if kind.is_dir() {
            files_below(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
