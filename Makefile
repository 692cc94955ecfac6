# The two commands are `make study` and `make test`; both set up what they need first.

CARGO ?= cargo
OUT ?= out/native-vs-vm
VIRTBENCH = target/release/virtbench

.PHONY: help study test soak bench profile fuzz lint build install setup setup-study setup-test setup-bench setup-predictions check-predictions deviation clean

help:
	@echo "make study    set up, build, and measure what virtualization costs this machine's storage"
	@echo "make test     set up and run every test"
	@echo "make soak     a million random histories of the fence, with crashes; 200 kills of its daemon"
	@echo "make bench    set up and reproduce every figure the documents quote"
	@echo "make check-predictions  real applications predicted, then run in a VM; errors and calibration"
	@echo "make deviation  four VMs under each way of sharing a hard disk and an SSD, beside the simulator"
	@echo "make profile  where each nanosecond of the engine's loops goes, into docs/profile.txt"
	@echo "make fuzz     feed every reader of foreign bytes with inventions, a minute each"
	@echo "make lint     formatting, clippy, documentation, licences"
	@echo "make install  install the command, its manual pages and completions (PREFIX=/usr/local)"

study: setup-study build
	$(VIRTBENCH) doctor --quiet
	$(VIRTBENCH) study native-vs-vm --grid quick --out "$(OUT)-$$(date +%Y%m%d-%H%M%S)"

test: setup-test
	$(CARGO) test --workspace --locked --no-fail-fast

SOAK_SEEDS ?= 1000000
SOAK_KILLS ?= 200
soak: setup-test
	VIRTBENCH_SEEDS=$(SOAK_SEEDS) $(CARGO) test --release --locked -p virtbench-fence --test crash -- --nocapture
	VIRTBENCH_KILLS=$(SOAK_KILLS) $(CARGO) test --locked -p virtbench --test fence_serve kills -- --nocapture

bench: setup-bench build
	$(CARGO) run --release --locked -p virtbench-bench
	$(CARGO) run --release --locked -p virtbench-study --example surface_replay -- target/surface-replay.img

profile: setup-bench build
	$(CARGO) run --release --locked -p virtbench-bench -- profile > target/profile.txt
	mv target/profile.txt docs/profile.txt

check-predictions: setup-predictions build
	$(VIRTBENCH) study predictions --cases docs/data/predictions.toml --trials 3 --out out/predictions

# A system whose results are in out/deviation is not measured again: remove the folder to begin anew. The table for
# docs/deviation.md is out/deviation/table.md.
DEVIATION_TIME ?= 25s
deviation: setup-study build
	$(VIRTBENCH) study deviation --systems all,VirtualFence:30ms --workload load:size=4k,read=50,random=100,outstanding=8 \
		--size 16MiB --memory 128MiB --repetitions 1 --time $(DEVIATION_TIME) --out out/deviation --resume

lint: setup-study
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	scripts/deny.sh

fuzz:
	scripts/fuzz.sh $(FUZZ_SECONDS)

build:
	$(CARGO) build --release --locked -p virtbench

PREFIX ?= /usr/local
install: setup-study build
	install -Dm755 $(VIRTBENCH) $(DESTDIR)$(PREFIX)/bin/virtbench
	$(VIRTBENCH) man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	$(VIRTBENCH) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/virtbench
	$(VIRTBENCH) completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_virtbench

setup: setup-study
setup-study:
	scripts/setup.sh study
setup-test:
	scripts/setup.sh test
setup-predictions:
	scripts/setup.sh predictions
setup-bench:
	scripts/setup.sh bench

clean:
	$(CARGO) clean
