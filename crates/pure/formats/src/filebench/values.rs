//! What a word stands for: numbers, sizes, distributions.

use std::collections::BTreeMap;

use virtbench_workload::files::Draw;

use super::tokens::shorten;

/// What a variable or an attribute has.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// As it is written.
    Word(String),
    /// A distribution.
    Draw(Draw),
}

impl Value {
    /// A whole number; `k`, `m`, `g` and `t` are powers of 1024.
    pub(super) fn number(&self) -> Result<u64, String> {
        let Self::Word(word) = self else { return Err("a number is needed, not a distribution".into()) };
        number(word).ok_or_else(|| format!("{:?} is no number, such as 16, 4k or 1m", shorten(word)))
    }

    /// The same, of 32 bits.
    pub(super) fn small(&self) -> Result<u32, String> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| format!("{number} is too large"))
    }

    /// A number, or what it is drawn from.
    pub(super) fn draw(&self) -> Result<Draw, String> {
        match self {
            Self::Draw(draw) => Ok(draw.clone()),
            Self::Word(_) => self.number().map(Draw::Fixed),
        }
    }

    /// A name.
    pub(super) fn word(&self) -> Result<&str, String> {
        match self {
            Self::Word(word) => Ok(word),
            Self::Draw(_) => Err("a name is needed, not a distribution".into()),
        }
    }

    /// Whether it is said to be so.
    pub(super) fn truth(&self) -> Result<bool, String> {
        match self.word()? {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(format!("{:?} is neither true nor false", shorten(other))),
        }
    }
}

fn number(word: &str) -> Option<u64> {
    let (digits, shift) = match word.chars().last()?.to_ascii_lowercase() {
        'k' => (&word[..word.len() - 1], 10),
        'm' => (&word[..word.len() - 1], 20),
        'g' => (&word[..word.len() - 1], 30),
        't' => (&word[..word.len() - 1], 40),
        _ => (word, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Reads `cvar(...)`'s and `randvar(...)`'s attributes.
pub(super) fn distribution(attributes: &BTreeMap<String, String>) -> Result<Draw, String> {
    let kind = attributes.get("type").map_or("", String::as_str);
    // cvar puts a distribution's parameters into one attribute, randvar each into its own.
    let mut parameters: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, value) in attributes.iter().filter(|(key, _)| key.as_str() != "type") {
        if key == "parameters" {
            for parameter in value.split(';').filter(|part| !part.is_empty()) {
                let (name, value) = parameter.split_once(':').ok_or_else(|| {
                    format!("parameters are written name:value, not {:?}", shorten(parameter))
                })?;
                parameters.insert(name, value);
            }
        } else {
            parameters.insert(key, value);
        }
    }
    let mut take = |name: &str| -> Result<f64, String> {
        let text = parameters.remove(name).ok_or_else(|| format!("{} needs {name}", shorten(kind)))?;
        let value = number(text).map(|value| value as f64).or_else(|| text.parse().ok());
        value
            .filter(|value| value.is_finite())
            .ok_or_else(|| format!("{name}: {:?} is no number", shorten(text)))
    };
    let draw = match kind {
        "cvar-gamma" => Draw::Gamma { mean: take("mean")?, shape: take("gamma")? },
        // Older models give the shape in thousandths.
        "gamma" => Draw::Gamma { mean: take("mean")?, shape: take("gamma")? / 1000.0 },
        "cvar-uniform" => Draw::Uniform { least: take("lower")?, most: take("upper")? },
        "uniform" => Draw::Uniform { least: take("min")?, most: take("max")? },
        "cvar-exponential" => Draw::Exponential { mean: take("mean")? },
        "cvar-normal" => Draw::Normal { mean: take("mean")?, sigma: take("sigma")? },
        "cvar-lognormal" => Draw::LogNormal { mu: take("mu")?, sigma: take("sigma")? },
        "" => return Err("a distribution needs its type".into()),
        other => {
            return Err(format!(
                "distribution {:?} is not supported: there are cvar-gamma, cvar-uniform, cvar-exponential, \
                 cvar-normal, cvar-lognormal, gamma and uniform",
                shorten(other)
            ));
        }
    };
    if let Some(name) = parameters.keys().next() {
        return Err(format!("{:?} of a distribution is not supported", shorten(name)));
    }
    draw.validate()?;
    Ok(draw)
}
