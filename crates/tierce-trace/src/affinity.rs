//! How a set of CPUs is written in a header: its bits as a number, or as a list of numbers where CPUs beyond 63 are in it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tierce_policy::Cpus;

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Words {
    One(u64),
    Several(Vec<u64>),
}

pub fn serialize<S: Serializer>(cpus: &Option<Cpus>, to: S) -> Result<S::Ok, S::Error> {
    let words = cpus.as_ref().map(|cpus| match cpus.words() {
        [first, rest @ ..] if rest.iter().all(|word| *word == 0) => Words::One(*first),
        all => Words::Several(all[..=all.iter().rposition(|word| *word != 0).unwrap_or(0)].to_vec()),
    });
    words.serialize(to)
}

pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Cpus>, D::Error> {
    let words: Option<Words> = Deserialize::deserialize(from)?;
    Ok(words.map(|words| match words {
        Words::One(word) => word.into(),
        Words::Several(words) => Cpus::from_words(words),
    }))
}

#[cfg(test)]
mod tests {
    use crate::header::TaskInfo;
    use tierce_policy::Cpus;

    #[test]
    fn a_number_or_a_list() {
        let of = |affinity| TaskInfo { affinity, ..Default::default() };
        for (cpus, text) in [
            (Cpus::from(5), "\"affinity\":5"),
            (Cpus::only(64) | Cpus::only(0), "\"affinity\":[1,1]"),
            (Cpus::only(130), "\"affinity\":[0,0,4]"),
        ] {
            let written = serde_json::to_string(&of(Some(cpus))).unwrap();
            assert!(written.contains(text), "{written}");
            assert_eq!(serde_json::from_str::<TaskInfo>(&written).unwrap().affinity, Some(cpus));
        }
        let without = serde_json::to_string(&of(None)).unwrap();
        assert!(!without.contains("affinity"), "{without}");
        assert_eq!(serde_json::from_str::<TaskInfo>(&without).unwrap().affinity, None);
    }
}
