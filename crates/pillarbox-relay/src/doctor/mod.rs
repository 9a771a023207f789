//! The doctor of a relay's file.

pub(crate) mod configuration;
mod status;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::handle::BoxFuture;
use pillarbox_doctor::{Configuration, Doctor, Sources};
use pillarbox_engine::run::StartError;
use pillarbox_routes::{Broker, Forwarder};
use toml::de::DeTable;

use self::status::Examined;
use crate::relay::{Relay, RelayError, add_new};

impl Relay {
    /// A doctor for every database and every broker that the file names, and for the relay that listens where the file says. Brokers and the
    /// relay are connected to when it runs.
    ///
    /// # Errors
    /// A database that the file names wrongly; one that does not answer is a finding.
    pub async fn doctor(&self) -> Result<Doctor, RelayError> {
        let mut opened = Vec::new();
        for source in &self.file.sources {
            opened.push((source, source.open().await));
        }
        let examined = opened.iter().filter_map(|(source, opened)| {
            let info = opened.as_ref().ok()?.info();
            let (database, table) = (info.address.clone(), info.table.clone());
            Some(Examined { source: source.name.clone(), database, table })
        });
        // Causes before what follows from them: the relay, its file and its brokers before the backlog of a database.
        let mut doctor = with_file(Doctor::new(), &self.file.path, None, self.file.server.listen, examined.collect());
        for Broker { publisher, targets, beginnings } in self.brokers() {
            let name = format!("broker {}", publisher.info().address);
            doctor = doctor.broker(name, publisher, targets, beginnings);
        }
        for (source, opened) in opened {
            let name = format!("source {}", source.name);
            doctor = match opened {
                Ok(store) => doctor.store(name, store),
                Err(pillarbox_config::Error::Start(StartError::Store(error)))
                    if error.kind() != StoreErrorKind::Config =>
                {
                    doctor.unreachable(name, &error)
                }
                Err(error) => {
                    doctor.close().await;
                    return Err(RelayError::of_source(source, error));
                }
            };
        }
        Ok(doctor)
    }

    /// Each broker once, with what all routes send to there.
    fn brokers(&self) -> Vec<Broker> {
        let mut brokers: Vec<Broker> = Vec::new();
        for Broker { publisher, targets, beginnings } in self.forwarders.iter().flat_map(Forwarder::brokers) {
            if !brokers.iter().any(|other| Arc::ptr_eq(&other.publisher, &publisher)) {
                let publisher = Arc::clone(&publisher);
                brokers.push(Broker { publisher, targets: Vec::new(), beginnings: Vec::new() });
            }
            // Routes of one source may share a target as well, which is asked for once.
            if let Some(broker) = brokers.iter_mut().find(|other| Arc::ptr_eq(&other.publisher, &publisher)) {
                add_new(&mut broker.targets, targets);
                add_new(&mut broker.beginnings, beginnings);
            }
        }
        brokers
    }
}

/// A doctor for a file with which no relay can start, as `problem` says. The relay that listens where the file says is asked all the same, if
/// that much of the file can be read; its databases and brokers are not examined.
pub fn doctor_of_unusable(path: &Path, problem: &str) -> Doctor {
    let listen = std::fs::read_to_string(path).ok().and_then(|text| listen(&text));
    with_file(Doctor::new(), path, Some(problem.to_owned()), listen, Vec::new())
}

/// Adds a file, and the relay that listens where it says, which should work on what is `examined`.
fn with_file(
    doctor: Doctor,
    path: &Path,
    unusable: Option<String>,
    listen: Option<SocketAddr>,
    examined: Vec<Examined>,
) -> Doctor {
    let relay = listen.map_or_else(|| "the relay".to_owned(), |listen| format!("relay at {listen}"));
    let (name, path) = (format!("file {}", path.display()), path.to_owned());
    let look = move || -> BoxFuture<'static, Configuration> {
        Box::pin(configuration::beside_relay(path.clone(), unusable.clone(), listen))
    };
    let ask = move || -> BoxFuture<'static, Sources> {
        let examined = examined.clone();
        Box::pin(async move { status::sources(listen, &examined).await })
    };
    doctor.relay(relay, ask).configuration(name, look)
}

/// The address of `relay.listen` in a text that may be wrong elsewhere.
fn listen(text: &str) -> Option<SocketAddr> {
    let (table, _) = DeTable::parse_recoverable(text);
    table.get_ref().get("relay")?.get_ref().get("listen")?.get_ref().as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_relay_is_read_from_a_file_that_is_wrong_elsewhere() {
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 9000)));
        assert_eq!(listen("[relay]\nlisten = '127.0.0.1:9000'\nunrouted = 'perhaps'\n"), address);
        assert_eq!(listen("[relay]\nlisten = '127.0.0.1:9000'\n[[source]\nname = 'shop\n"), address);
        assert_eq!(listen("[[source]\n"), None);
    }
}
