//! A database's root and its populated data, which every start begins with, and how it is reached.

use std::net::SocketAddr;

use virtbench_appliance::DataSet;
use virtbench_oltp::{Address, Connect, Endpoint, POPULATION_FORMAT, Population, populate};
use virtbench_recipe::{Recipe, supplied};
use virtbench_record::{ApplianceRoot, DatabaseKind};

use crate::appliances::built::BuiltAppliance;
use crate::runner::progress::Progress;
use crate::study_error::StudyError;

/// The appliance of a database.
#[derive(Debug)]
pub struct DatabaseAppliance {
    pub(crate) built: BuiltAppliance,
    pub(crate) kind: DatabaseKind,
}

impl DatabaseAppliance {
    /// Finds the root of a database, or builds it.
    ///
    /// # Errors
    /// It cannot be built here, or it was to stop.
    pub fn find(kind: DatabaseKind, progress: &mut Progress<'_>) -> Result<Self, StudyError> {
        Ok(Self { built: BuiltAppliance::find(&recipe(kind)?, progress)?, kind })
    }

    /// Digest of the root, in hexadecimal digits.
    #[must_use]
    pub fn root_digest(&self) -> &str {
        self.built.root_digest()
    }

    /// The least memory that it needs, in bytes.
    #[must_use]
    pub fn least_memory(&self) -> u64 {
        self.built.least_memory()
    }

    /// What it is made of.
    #[must_use]
    pub fn root(&self) -> ApplianceRoot {
        self.built.root()
    }

    /// The data set of this population, which is made natively where there is none.
    pub(crate) fn data(
        &self,
        population: Population,
        processors: u32,
        progress: &mut Progress<'_>,
    ) -> Result<DataSet, StudyError> {
        let Population { warehouses, seed } = population;
        let key = format!("oltp {POPULATION_FORMAT}: {warehouses} warehouses seed {seed}");
        progress.doing(&format!("preparing data: {warehouses} warehouses"));
        let stop = progress.stop;
        self.built.data(&key, processors, progress, |appliance| {
            let address = appliance.address(port(self.kind)).ok_or("the database has no address")?;
            let connect = connect(self.kind, address);
            appliance.reach().within(|| populate(&connect, population, false, stop, &mut |_| {}))??;
            Ok(())
        })
    }
}

fn recipe(kind: DatabaseKind) -> Result<Recipe, StudyError> {
    let name = recipe_name(kind);
    let missing = || StudyError::input(format!("no recipe {name} comes with virtbench: a defect"));
    supplied::find(name).ok_or_else(missing)?.recipe().map_err(StudyError::input)
}

/// The recipe of a database.
pub(crate) fn recipe_name(kind: DatabaseKind) -> &'static str {
    match kind {
        DatabaseKind::PostgreSql => "postgresql",
        DatabaseKind::MariaDb => "mariadb",
    }
}

/// Which database a recipe is; nothing where it is none of ours.
pub(crate) fn database_kind(recipe: &str) -> Option<DatabaseKind> {
    [DatabaseKind::PostgreSql, DatabaseKind::MariaDb].into_iter().find(|kind| recipe_name(*kind) == recipe)
}

/// The port on which its recipe serves.
pub(crate) fn port(kind: DatabaseKind) -> u16 {
    match kind {
        DatabaseKind::PostgreSql => 5432,
        DatabaseKind::MariaDb => 3306,
    }
}

/// The account and the database that its recipe makes. Only the run itself reaches the appliance.
pub(crate) fn connect(kind: DatabaseKind, at: SocketAddr) -> Connect {
    let (user, database, password) = match kind {
        DatabaseKind::PostgreSql => ("postgres", "postgres", None),
        DatabaseKind::MariaDb => ("bench", "bench", Some("bench".to_owned())),
    };
    let endpoint = Endpoint::Tcp(at.ip().to_string(), at.port());
    Connect { address: Address::new(kind, endpoint, user, database), password }
}
