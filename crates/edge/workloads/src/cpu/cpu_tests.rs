use super::*;

#[test]
fn every_kernel_comes_to_its_known_result_again_and_again() {
    for kernel in CpuKernel::ALL {
        let mut instance = build(kernel).expect("this build has all");
        for round in 0..2 {
            assert!(instance.operation(), "{} went wrong in operation {round}", kernel.name());
        }
    }
}

#[test]
fn the_score_is_the_geometric_mean() {
    assert!((geometric_mean(&[2.0, 8.0]) - 4.0).abs() < 1e-12);
    assert_eq!(geometric_mean(&[0.0, 8.0]), 0.0);
}
