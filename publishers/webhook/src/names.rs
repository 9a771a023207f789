//! Looking names up.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use crate::address::is_public;

/// The lookups of a publisher that are under way at most. Each takes a thread, which cannot be interrupted.
const MAX_LOOKUPS: usize = 64;

/// The lookups of one zone that are under way at most: where its servers do not answer, it leaves threads to the others.
const MAX_LOOKUPS_OF_ZONE: usize = 8;

/// The zones that are remembered while they have no lookup.
const MAX_ZONES: usize = 1_000;

/// Looks names up, and leaves only addresses that may be connected to. The connection is made to one of those, without a second
/// lookup that could answer otherwise.
#[derive(Debug, Clone)]
pub(crate) struct PublicNames {
    allow_private: bool,
    lookups: Arc<Lookups>,
}

impl PublicNames {
    pub(crate) fn new(allow_private: bool) -> Self {
        Self { allow_private, lookups: Arc::new(Lookups::default()) }
    }
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { allow_private, lookups } = self.clone();
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let asked = name.clone();
            let found = lookups.run(&name, move || Ok((asked, 0).to_socket_addrs()?.collect::<Vec<_>>())).await?;
            admitted(&name, found, allow_private).map(|found| Box::new(found.into_iter()) as Addrs).map_err(Into::into)
        })
    }
}

#[derive(Debug)]
struct Lookups {
    all: Arc<Semaphore>,
    by_zone: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for Lookups {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_LOOKUPS)), by_zone: Mutex::default() }
    }
}

impl Lookups {
    /// Runs the lookup of a name once there is a thread for it. One that nobody waits for any more keeps its thread until it ends.
    async fn run<T: Send + 'static>(
        &self,
        name: &str,
        look_up: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let of_zone = self.zone(name).acquire_owned().await.map_err(io::Error::other)?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.map_err(io::Error::other)?;
        let thread = tokio::task::spawn_blocking(move || {
            let found = look_up();
            drop((of_zone, of_all));
            found
        });
        thread.await.map_err(io::Error::other)?
    }

    /// The permits of a name's zone: of its last two labels, which for some countries is a zone of many.
    fn zone(&self, name: &str) -> Arc<Semaphore> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let zone = match name.rmatch_indices('.').nth(1) {
            Some((dot, _)) => name[dot + 1..].to_owned(),
            None => name,
        };
        let mut zones = self.by_zone.lock().unwrap_or_else(PoisonError::into_inner);
        if zones.len() >= MAX_ZONES && !zones.contains_key(&zone) {
            zones.retain(|_, permits| Arc::strong_count(permits) > 1);
        }
        Arc::clone(zones.entry(zone).or_insert_with(|| Arc::new(Semaphore::new(MAX_LOOKUPS_OF_ZONE))))
    }
}

fn admitted(name: &str, found: Vec<SocketAddr>, allow_private: bool) -> Result<Vec<SocketAddr>, PrivateName> {
    let refused = found.first().copied();
    let admitted: Vec<_> = found.into_iter().filter(|address| allow_private || is_public(address.ip())).collect();
    match refused {
        Some(address) if admitted.is_empty() => Err(PrivateName { name: name.to_owned(), address: address.ip() }),
        _ => Ok(admitted),
    }
}

/// A name leads to no address that may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("{name} leads to {address}, which is no public address; set `allow_private = true` if it is meant")]
pub(crate) struct PrivateName {
    name: String,
    address: IpAddr,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[test]
    fn a_name_leads_to_public_addresses_only() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| SocketAddr::new(text.parse().expect("an address"), 0)).collect()
        };
        let mixed = addresses(&["10.0.0.1", "8.8.8.8", "::1", "2606:4700::1111"]);
        let left = admitted("h", mixed.clone(), false).expect("some are left");
        assert_eq!(left, addresses(&["8.8.8.8", "2606:4700::1111"]));
        assert_eq!(admitted("h", mixed.clone(), true).expect("all are left"), mixed);
        let error =
            admitted("h.example", addresses(&["169.254.169.254", "::1"]), false).expect_err("refused").to_string();
        assert!(error.contains("h.example leads to 169.254.169.254") && error.contains("`allow_private = true`"));
        assert!(admitted("h", Vec::new(), false).is_ok_and(|left| left.is_empty()));
    }

    /// A thread cannot be interrupted: what gives up waiting for it must not let another begin.
    #[tokio::test]
    async fn a_zone_that_does_not_answer_leaves_threads_to_the_others() {
        let lookups = Lookups::default();
        let (answer, answers) = mpsc::channel::<()>();
        let answers = Arc::new(Mutex::new(answers));
        let silent = |name: String| {
            let (lookups, answers) = (&lookups, Arc::clone(&answers));
            async move {
                let wait = move || Ok(answers.lock().is_ok_and(|answers| answers.recv().is_ok()));
                timeout(Duration::from_millis(50), lookups.run(&name, wait)).await
            }
        };
        let names = (0..2 * MAX_LOOKUPS).map(|number| silent(format!("{number}.silent.example")));
        assert!(futures_util::future::join_all(names).await.iter().all(Result::is_err));
        assert_eq!(lookups.all.available_permits(), MAX_LOOKUPS - MAX_LOOKUPS_OF_ZONE);
        assert!(lookups.run("www.well.example", || Ok(7)).await.is_ok_and(|found| found == 7));
        drop(answer);
        assert!(lookups.run("www.silent.example", || Ok(8)).await.is_ok_and(|found| found == 8), "it answers again");
    }

    #[test]
    fn a_zone_is_the_last_two_labels_of_a_name() {
        let lookups = Lookups::default();
        let is_same = |one, other| Arc::ptr_eq(&lookups.zone(one), &lookups.zone(other));
        assert!(is_same("a.b.example.com", "EXAMPLE.com.") && is_same("localhost", "localhost"));
        assert!(!is_same("a.example.com", "a.example.org") && !is_same("com", "a.com"));
        (0..2 * MAX_ZONES).for_each(|number| drop(lookups.zone(&number.to_string())));
        assert!(lookups.by_zone.into_inner().expect("zones").len() <= MAX_ZONES);
    }
}
