//! How alike the throughput of two points is: the covariance of their logarithms.
//!
//! The kernel is a product over the three axes of (1 + what that axis explains), so that it holds
//! every main effect and every interaction (an ANOVA kernel; Duvenaud, "Automatic Model
//! Construction with Gaussian Processes", Cambridge 2014, section 6.3). A main effect is learnt from
//! all points at once, which is what makes a few of them enough.
//!
//! Surfaces are smooth inside and jump at their rims: purely sequential access, and within it pure
//! reads and pure writes, stand apart ([ESX Disk 2003], section 3.4). A smooth kernel would draw the
//! neighbours up with the peak; so each of these rims has a term of its own, shared only by points
//! on the same rim.

use virtbench_record::PointKey;

/// What a kernel and the noise are made of; each is positive, and tuned as a logarithm.
pub(crate) const HYPERPARAMETERS: usize = 11;

/// Median of each hyperparameter before anything is measured, and how many times more or less it
/// may well be (one standard deviation of the logarithm). Variances are of natural logarithms of
/// throughput; lengths are in units of an axis' whole range.
const PRIORS: [(f64, f64); HYPERPARAMETERS] = [
    (0.5, 1.5),  // scale of everything
    (1.0, 0.5),  // length over block sizes
    (0.8, 0.5),  // length over shares of reads
    (0.8, 0.5),  // length over shares of random seeks
    (1.0, 1.0),  // smooth effect of the block size
    (0.3, 1.0),  // smooth effect of reads
    (0.05, 1.5), // pure reads, pure writes: apart everywhere
    (1.0, 1.0),  // smooth effect of random seeks
    (0.5, 1.5),  // purely sequential: apart from the rest
    (0.3, 1.5),  // pure reads, pure writes: apart where access is purely sequential
    (4e-4, 1.2), // noise: 2 % of the throughput
];

/// The hyperparameters, as logarithms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kernel {
    logarithms: [f64; HYPERPARAMETERS],
}

impl Default for Kernel {
    fn default() -> Self {
        Self { logarithms: PRIORS.map(|(median, _)| median.ln()) }
    }
}

impl Kernel {
    /// This kernel with one hyperparameter's logarithm moved by `step`.
    pub(crate) fn moved(&self, index: usize, step: f64) -> Self {
        let mut moved = self.clone();
        moved.logarithms[index] += step;
        moved
    }

    /// Logarithm of the density of these hyperparameters before anything is measured, less a constant.
    pub(crate) fn log_prior(&self) -> f64 {
        let deviation = |(logarithm, (median, spread)): (&f64, &(f64, f64))| {
            -0.5 * ((logarithm - median.ln()) / spread).powi(2)
        };
        self.logarithms.iter().zip(&PRIORS).map(deviation).sum()
    }

    /// Variance of one measurement around the truth.
    pub(crate) fn noise(&self) -> f64 {
        self.logarithms[HYPERPARAMETERS - 1].exp()
    }

    /// The covariance function itself.
    pub(crate) fn covariance(&self) -> impl Fn(&GridPosition, &GridPosition) -> f64 + use<> {
        let [
            scale,
            block_length,
            read_length,
            random_length,
            block,
            read,
            read_rim,
            random,
            sequential,
            peak,
            _,
        ] = self.logarithms.map(f64::exp);
        move |one, other| {
            let same_rim = one.pure.is_some() && one.pure == other.pure;
            let both_sequential = one.sequential && other.sequential;
            let blocks = 1.0 + block * matern((one.block - other.block) / block_length);
            let mut reads = read * matern((one.read - other.read) / read_length);
            if same_rim {
                reads += read_rim;
                if both_sequential {
                    reads += peak;
                }
            }
            let mut randoms = random * matern((one.random - other.random) / random_length);
            if both_sequential {
                randoms += sequential;
            }
            scale * blocks * (1.0 + reads) * (1.0 + randoms)
        }
    }
}

/// Matern's covariance with smoothness 5/2, at a distance in units of its length.
fn matern(distance: f64) -> f64 {
    let x = 5f64.sqrt() * distance.abs();
    (1.0 + x + x * x / 3.0) * (-x).exp()
}

/// A point of the surface as the kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GridPosition {
    /// Logarithm of the block size, 0 for the grid's smallest to 1 for its largest.
    block: f64,
    /// Share of reads, 0 to 1.
    read: f64,
    /// Share of random seeks, 0 to 1.
    random: f64,
    /// Whether nothing but writes (false) or nothing but reads (true) is done.
    pure: Option<bool>,
    /// Whether no operation seeks.
    sequential: bool,
}

impl GridPosition {
    /// Where `point` lies in a grid with these block sizes, in bytes.
    pub(crate) fn new(point: PointKey, smallest_bytes: u64, largest_bytes: u64) -> Self {
        let log = |bytes: u64| (bytes.max(1) as f64).log2();
        let range = (log(largest_bytes) - log(smallest_bytes)).max(1.0);
        Self {
            block: (log(point.block_bytes) - log(smallest_bytes)) / range,
            read: f64::from(point.read_percent) / 100.0,
            random: f64::from(point.random_percent) / 100.0,
            pure: match point.read_percent {
                0 => Some(false),
                100 => Some(true),
                _ => None,
            },
            sequential: point.random_percent == 0,
        }
    }
}
