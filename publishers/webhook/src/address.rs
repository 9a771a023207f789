//! Addresses that are connected to only where `allow_private` is set.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// True if an address belongs to the open Internet: a stranger may send this machine there.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// By IANA's registry of special addresses, and one of a cloud that is in none.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        // Azure's own service for each machine, with its certificates: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
        || address.octets() == [168, 63, 129, 16]
        || a >= 224)
}

/// True if the address is listed as public; no other is. IPv6 has one block of public addresses, with a few holes in it.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    if (a, b, c, d, e, f) == (0x64, 0xff9b, 0, 0, 0, 0) {
        // A network without IPv4 reaches an IPv4 address by this one (NAT64), so that is what counts.
        let [[g, h], [i, j]] = [g.to_be_bytes(), h.to_be_bytes()];
        return is_public_v4(Ipv4Addr::new(g, h, i, j));
    }
    let in_the_block = a & 0xe000 == 0x2000;
    let protocols = a == 0x2001 && b < 0x200;
    let documentation = (a == 0x2001 && b == 0xdb8) || (a == 0x3fff && b < 0x1000);
    let six_to_four = a == 0x2002;
    in_the_block && !protocols && !documentation && !six_to_four
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each network that is not public its first and its last address, and between them what they are most often used for, and
    /// the addresses before and behind it, where these are public.
    #[test]
    fn only_the_open_internet_is_public() {
        for (before, special, behind) in [
            ("", &["0.0.0.0", "0.1.2.3", "0.255.255.255"][..], "1.0.0.0"),
            ("9.255.255.255", &["10.0.0.0", "10.0.0.1", "10.255.255.255"], "11.0.0.0"),
            ("100.63.255.255", &["100.64.0.0", "100.127.255.255"], "100.128.0.0"),
            ("126.255.255.255", &["127.0.0.0", "127.0.0.1", "127.255.255.255"], "128.0.0.0"),
            ("168.63.129.15", &["168.63.129.16"], "168.63.129.17"),
            ("169.253.255.255", &["169.254.0.0", "169.254.169.254", "169.254.255.255"], "169.255.0.0"),
            ("172.15.255.255", &["172.16.0.0", "172.31.255.255"], "172.32.0.0"),
            ("191.255.255.255", &["192.0.0.0", "192.0.0.170", "192.0.0.255"], "192.0.1.0"),
            ("192.0.1.255", &["192.0.2.0", "192.0.2.255"], "192.0.3.0"),
            ("192.88.98.255", &["192.88.99.0", "192.88.99.255"], "192.88.100.0"),
            ("192.167.255.255", &["192.168.0.0", "192.168.255.255"], "192.169.0.0"),
            ("198.17.255.255", &["198.18.0.0", "198.19.255.255"], "198.20.0.0"),
            ("198.51.99.255", &["198.51.100.0", "198.51.100.255"], "198.51.101.0"),
            ("203.0.112.255", &["203.0.113.0", "203.0.113.255"], "203.0.114.0"),
            ("223.255.255.255", &["224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.255"], ""),
            ("", &["::", "::1", "::127.0.0.1", "100::1", "1fff:ffff::"], "2000::"),
            ("2000:ffff::", &["2001::", "2001:1ff:ffff::"], "2001:200::"),
            ("2001:db7:ffff::", &["2001:db8::", "2001:db8:ffff::"], "2001:db9::"),
            ("2001:ffff::", &["2002::", "2002:7f00:1::1", "2002:a9fe:a9fe::1", "2002:ffff::"], "2003::"),
            ("3ffe:ffff::", &["3fff::", "3fff:fff:ffff::"], "3fff:1000::"),
            ("3fff:ffff::", &["4000::", "fc00::1", "fd00:ec2::254", "fe80::1", "febf::1", "fec0::1", "ff02::1"], ""),
            // The address of IPv4 counts.
            (
                "::ffff:9.255.255.255",
                &["::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"],
                "::ffff:8.8.8.8",
            ),
            ("64:ff9b::8.8.8.8", &["64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1"], ""),
            ("1.1.1.1", &[], "8.8.8.8"),
            ("2001:4860:4860::8888", &[], "2606:4700::1111"),
        ] {
            let is_public = |address: &str| is_public(address.parse().expect(address));
            for address in [before, behind].into_iter().filter(|address| !address.is_empty()) {
                assert!(is_public(address), "{address}");
            }
            for address in special {
                assert!(!is_public(address), "{address}");
            }
        }
    }
}
