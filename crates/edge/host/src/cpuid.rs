//! What hypervisors say of themselves by an instruction of the processor, whatever the system.

/// What the hypervisor calls itself: leaf 0x4000_0000 of CPUID, which processors leave to it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn hypervisor_leaf() -> Option<String> {
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    hypervisor_name(&bytes)
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn hypervisor_leaf() -> Option<String> {
    None
}

/// A usual name for a hypervisor's signature; the signature itself of one that is not known.
#[cfg(any(target_arch = "x86_64", test))]
fn hypervisor_name(signature: &[u8]) -> Option<String> {
    let text: String = signature.iter().map(|byte| char::from(*byte)).filter(|c| !c.is_control()).collect();
    let name = match text.trim() {
        "" => return None,
        "KVMKVMKVM" => "KVM",
        "TCGTCGTCGTCG" => "QEMU (TCG)",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "VBoxVBoxVBox" => "VirtualBox",
        "bhyve bhyve" => "bhyve",
        "prl hyperv" => "Parallels",
        "ACRNACRNACRN" => "ACRN",
        other if other.chars().all(|c| c.is_ascii_graphic() || c == ' ') => other,
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hypervisors_have_their_usual_names() {
        assert_eq!(hypervisor_name(b"KVMKVMKVM\0\0\0").as_deref(), Some("KVM"));
        assert_eq!(hypervisor_name(b"Microsoft Hv").as_deref(), Some("Hyper-V"));
        assert_eq!(hypervisor_name(b"SomethingNew").as_deref(), Some("SomethingNew"));
        assert_eq!((hypervisor_name(&[0; 12]), hypervisor_name(&[0xff; 12])), (None, None));
    }
}
