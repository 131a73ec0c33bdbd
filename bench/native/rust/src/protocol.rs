//! The lines of JSON between the runner and a driver; see `bench/README.md`.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
pub struct Request {
    pub id: u64,
    pub peer: String,
    pub scenario: Scenario,
}

fn bytes() -> String {
    "bytes".into()
}

#[derive(Deserialize)]
pub struct Scenario {
    pub name: String,
    /// Bytes of each message.
    pub size: usize,
    #[serde(default = "bytes")]
    pub format: String,
    pub ends: String,
    pub wait: Wait,
    pub pin: Pin,
    pub duration_ms: u64,
    pub warmup_ms: u64,
    /// Messages that are written before an answer is awaited.
    pub burst: Option<u64>,
    /// Messages that may be under way.
    pub window: Option<usize>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    Spin,
    Park,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    Free,
    OneCore,
}

impl Scenario {
    pub fn window(&self) -> usize {
        self.window.unwrap_or(4_096)
    }

    pub fn burst(&self) -> u64 {
        self.burst.unwrap_or(1_000)
    }
}

/// Values and how often each was seen.
#[derive(Serialize)]
pub struct Sparse {
    unit: &'static str,
    values: Vec<u64>,
    counts: Vec<u64>,
}

impl From<&Histogram<u64>> for Sparse {
    fn from(histogram: &Histogram<u64>) -> Self {
        let (values, counts) = histogram
            .iter_recorded()
            .map(|step| (histogram.median_equivalent(step.value_iterated_to()), step))
            .map(|(value, step)| (value, step.count_at_value()))
            .unzip();
        Sparse {
            unit: "ns",
            values,
            counts,
        }
    }
}

#[derive(Serialize)]
pub struct Measured {
    pub count: u64,
    pub elapsed_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Sparse>,
    pub sleeps: u64,
    pub cpu_ms: f64,
    pub bytes: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    Result(Measured),
    Decline(String),
    Error(String),
}

#[derive(Serialize)]
pub struct Answer {
    pub id: u64,
    #[serde(flatten)]
    pub body: Body,
}
