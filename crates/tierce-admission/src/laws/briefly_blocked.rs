//! `briefly-blocked` is for time that others leave, and promises nothing.

use crate::laws::policy::Laws;

/// Credit for the time of being blocked.
pub struct BrieflyBlocked;

impl Laws for BrieflyBlocked {}
