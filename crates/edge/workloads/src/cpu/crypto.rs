//! Cryptography: a block cipher, a digest, signatures.

use aes::Aes128;
use ctr::Ctr64BE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use ed25519_dalek::{Signature, Signer, SigningKey, Verifier};
use sha2::{Digest, Sha256};
use virtbench_units::Random;

use super::kernel::Kernel;

const BYTES: usize = 1 << 20;

fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    std::iter::repeat_with(|| random.next_u64().to_le_bytes()).flatten().take(length).collect()
}

/// 1 MiB encrypted and decrypted again.
pub(super) struct Aes {
    buffer: Vec<u8>,
    plain: u32,
}

impl Aes {
    pub(super) fn new() -> Self {
        let buffer = random_bytes(1, BYTES);
        Self { plain: checksum(&buffer), buffer }
    }
}

impl Kernel for Aes {
    fn operation(&mut self) -> bool {
        let cipher = || Ctr64BE::<Aes128>::new(&[0x42; 16].into(), &[0x24; 16].into());
        cipher().apply_keystream(&mut self.buffer);
        let encrypted = checksum(&self.buffer);
        cipher().apply_keystream(&mut self.buffer);
        encrypted == ENCRYPTED && checksum(&self.buffer) == self.plain
    }
}

const ENCRYPTED: u32 = 131_937_517;

/// SHA-256 of 1 MiB.
pub(super) struct Sha(Vec<u8>);

impl Sha {
    pub(super) fn new() -> Self {
        Self(random_bytes(2, BYTES))
    }
}

impl Kernel for Sha {
    fn operation(&mut self) -> bool {
        checksum(&Sha256::digest(&self.0)) == HASHED
    }
}

const HASHED: u32 = 981_695_888;

/// 32 messages of 1 KiB signed, and the signatures verified.
pub(super) struct SignVerify {
    key: SigningKey,
    messages: Vec<u8>,
}

impl SignVerify {
    pub(super) fn new() -> Self {
        Self { key: SigningKey::from_bytes(&[7; 32]), messages: random_bytes(3, 32 << 10) }
    }
}

impl Kernel for SignVerify {
    fn operation(&mut self) -> bool {
        let messages = || self.messages.chunks(1 << 10);
        let signatures: Vec<Signature> = messages().map(|message| self.key.sign(message)).collect();
        let public = self.key.verifying_key();
        let verified =
            messages().zip(&signatures).all(|(message, signature)| public.verify(message, signature).is_ok());
        let bytes: Vec<u8> = signatures.iter().flat_map(Signature::to_bytes).collect();
        verified && checksum(&bytes) == SIGNED
    }
}

const SIGNED: u32 = 3_353_512_079;

/// A short fingerprint of bytes.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
