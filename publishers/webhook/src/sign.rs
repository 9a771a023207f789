//! Signatures of Standard Webhooks.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::Secret;
use sha2::Sha256;

/// Generators of secrets differ in whether they pad.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The secrets that sign, ready to use.
pub(crate) struct SigningKeys(Vec<Hmac<Sha256>>);

/// How many there are, and nothing of them.
impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKeys({})", self.0.len())
    }
}

impl SigningKeys {
    pub(crate) fn parse(secrets: &[Secret]) -> Result<Self, ConfigError> {
        secrets.iter().enumerate().map(|(index, secret)| key(index + 1, secret)).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of `webhook-signature`: a signature for each secret, in their order. `seconds` since 1970.
    pub(crate) fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let mut signatures = String::new();
        for key in &self.0 {
            let mut mac = key.clone();
            mac.update(format!("{id}.{seconds}.").as_bytes());
            mac.update(body);
            if !signatures.is_empty() {
                signatures.push(' ');
            }
            signatures.push_str("v1,");
            STANDARD.encode_string(mac.finalize().into_bytes(), &mut signatures);
        }
        signatures
    }
}

fn key(number: usize, secret: &Secret) -> Result<Hmac<Sha256>, ConfigError> {
    let remedy = "write `whsec_` followed by the Base64 of 24 to 64 random bytes, as by `openssl rand -base64 32`";
    let refuse =
        |problem: &str| ConfigError::new("secrets", format!("holds a secret, number {number}, that {problem}"), remedy);
    let text = secret.expose().strip_prefix("whsec_").ok_or_else(|| refuse("does not begin with `whsec_`"))?;
    let bytes = LENIENT.decode(text).map_err(|_| refuse("is not Base64"))?;
    if !(24..=64).contains(&bytes.len()) {
        return Err(refuse(&format!("has {} bytes", bytes.len())));
    }
    Hmac::new_from_slice(&bytes).map_err(|_| refuse("cannot be used"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret, the message and the signature that the specification's own libraries are tested with.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn it_is_the_signature_of_the_specification() {
        let body = br#"{"test": 2432232314}"#;
        let keys = SigningKeys::parse(&[SECRET.into()]).expect("a secret");
        assert_eq!(keys.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body), SIGNATURE);
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let both = SigningKeys::parse(&[other.into(), SECRET.into()]).expect("two secrets");
        let signatures = both.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signatures.split(' ').count(), 2);
        assert!(signatures.ends_with(&format!(" {SIGNATURE}")));
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_named_by_its_place() {
        let error =
            |secret: &str| SigningKeys::parse(&[SECRET.into(), secret.into()]).expect_err("refused").to_string();
        for (secret, problem) in [
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "number 2, that does not begin with `whsec_`"),
            ("whsec_!!", "is not Base64"),
            ("whsec_aHVudGVyMg==", "has 7 bytes"),
        ] {
            assert!(error(secret).contains(problem) && !error(secret).contains(&secret[6..]), "{}", error(secret));
        }
        assert!(SigningKeys::parse(&["whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".into()]).is_ok());
    }
}
