//! Processors that QEMU's guests see under KVM.

/// The processor that a guest sees under KVM: the host's, or what works where a KVM refuses that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvmCpu {
    /// The host's.
    #[default]
    Host,
    /// The host's, without the register of its architectural capabilities, which a nested KVM may not let QEMU set.
    HostWithoutCapabilities,
    /// All that KVM offers.
    Max,
}

impl KvmCpu {
    /// In the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::Host, Self::HostWithoutCapabilities, Self::Max];

    /// QEMU's word for it.
    #[must_use]
    pub fn model(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::HostWithoutCapabilities => "host,-arch-capabilities",
            Self::Max => "max",
        }
    }

    /// The one that is tried after it.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        let place = Self::ALL.iter().position(|cpu| *cpu == self)?;
        Self::ALL.get(place + 1).copied()
    }
}
