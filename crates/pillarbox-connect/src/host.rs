use std::fmt;
use std::net::Ipv6Addr;
use std::num::NonZeroU16;

/// A host and its port, as a URL names them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Host {
    /// A name or an address; one of IPv6 without its brackets, as it is resolved.
    pub name: String,
    /// The port.
    pub port: u16,
}

impl Host {
    /// Reads `host`, `host:port`, `[address]` or `[address]:port`. The problem does not repeat the text, which may be a piece of
    /// a password that was not encoded.
    pub(crate) fn read(text: &str, default_port: u16) -> Result<Self, &'static str> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']').ok_or("has a `[` that is not closed")?;
                address.parse::<Ipv6Addr>().map_err(|_| "has brackets around what is no address of IPv6")?;
                (address, port)
            }
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => default_port,
            Some(_) if text.parse::<Ipv6Addr>().is_ok() => {
                return Err("has an address of IPv6 without brackets around it");
            }
            // A sign, which numbers may have and ports have not.
            Some(port) if !port.starts_with('+') => {
                port.parse::<NonZeroU16>().map_err(|_| "has a port that is no number from 1 to 65535")?.get()
            }
            _ => return Err("has a port that is no number from 1 to 65535"),
        };
        if name.is_empty() {
            return Err("has no host");
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if !name.bytes().all(is_plain) {
            return Err("has a host with a character that no name of a host has");
        }
        Ok(Self { name: name.to_owned(), port })
    }
}

/// With the brackets of IPv6: `[::1]:4222`.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port } = self;
        if name.contains(':') { write!(f, "[{name}]:{port}") } else { write!(f, "{name}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_ports_are_read_and_shown() {
        for (text, name, shown) in [
            ("localhost", "localhost", "localhost:7"),
            ("b-1.internal:9092", "b-1.internal", "b-1.internal:9092"),
            ("my_broker.", "my_broker.", "my_broker.:7"),
            ("10.0.0.7:1", "10.0.0.7", "10.0.0.7:1"),
            ("[::1]", "::1", "[::1]:7"),
            ("[fd00::7]:65535", "fd00::7", "[fd00::7]:65535"),
        ] {
            let host = Host::read(text, 7).expect(text);
            assert_eq!((&*host.name, &*host.to_string()), (name, shown));
        }
    }

    #[test]
    fn malformed_hosts_are_refused() {
        for (text, problem) in [
            ("", "no host"),
            (":4222", "no host"),
            ("h:", "a port"),
            ("h:0", "a port"),
            ("h:65536", "a port"),
            ("h:+80", "a port"),
            ("h:-1", "a port"),
            ("h:80x", "a port"),
            ("h:1:2", "a port"),
            ("[::1]x", "a port"),
            ("[::1", "not closed"),
            ("[localhost]", "no address of IPv6"),
            ("[fe80::1%eth0]", "no address of IPv6"),
            ("::1", "without brackets"),
            ("fd00::1:2", "without brackets"),
            ("a b", "a character"),
            ("h%41", "a character"),
            ("é.example", "a character"),
            ("h]", "a character"),
        ] {
            let found = Host::read(text, 7).expect_err(text);
            assert!(found.contains(problem), "{text}: {found}");
        }
    }
}
