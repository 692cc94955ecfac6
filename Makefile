# The two commands are `make study` and `make test`; both set up what they need first.

CARGO ?= cargo
OUT ?= out/native-vs-vm
# The build of `make study`, and that of everything.
MACHINE := $(shell uname -m)
STATIC = $(MACHINE)-unknown-linux-musl
STUDY_BUILD = target/study/bin
VIRTBENCH = $(STUDY_BUILD)/virtbench
INSTALLED = target/release/virtbench

.PHONY: help study check test soak bench profile fuzz fio-examples public-files lint doc-check licences build whole install setup setup-study setup-check setup-install setup-test setup-lint setup-bench setup-predictions uml uml-kernel appliances check-predictions check-regressions deviation evaluation papers clean deb deb-check setup-package dist dist-check dist-again container-check study-check

help:
	@echo "make study    set up, build, and measure what virtualization costs this machine's storage"
	@echo "make check    formatting, clippy, and the tests that need no guest and no server: minutes"
	@echo "make test     set up and run every test"
	@echo "make soak     a million random histories of the fence, with crashes; flipped bits; five million requests beside a model;"
	@echo "              200 kills of its daemon, 1,000 power failures under it, 500 rounds of everything in turn; 20 runs of it beside the simulator;"
	@echo "              a simulated vCenter with 10,000 VMs, read and followed; a real OpenStack whose hosts are fake"
	@echo "make bench    set up and reproduce every figure the documents quote"
	@echo "make check-predictions  real applications predicted, then run in a VM; errors and calibration: the tuning set under TCG,"
	@echo "                        what was once held out in User Mode Linux, and held-out sets there, under TCG, on other storages, and tiles"
	@echo "make check-regressions  forty runs between which nothing changed, compared: how often compare alarms, into docs/data/regressions.csv"
	@echo "make deviation  four VMs under each way of sharing a hard disk and an SSD, beside the simulator"
	@echo "make evaluation  the evaluation of [VirtualFence 2013] in virtual time, into docs/data/fence-evaluation.json"
	@echo "make papers   what the papers' conclusions are held beside, measured in hours, into docs/papers.md; goes on where it was"
	@echo "make profile  where each nanosecond of the engine's loops goes, into docs/profile.txt"
	@echo "make fio-examples  FIO_EXAMPLES=FOLDER: how many of fio's example job files run"
	@echo "make public-files  PUBLIC_FILES=FOLDER: how many .fio and .icf files below a folder run, and why the others do not"
	@echo "make fuzz     feed every reader of foreign bytes with inventions, a minute each"
	@echo "make build    the command with what compares storage, as make study uses it: target/study/bin/virtbench"
	@echo "make lint     formatting, clippy"
	@echo "make doc-check  documentation"
	@echo "make licences licences, sources and known vulnerabilities of the dependencies"
	@echo "make uml      the kernel of User Mode Linux guests, for environments uml:"
	@echo "make uml-kernel  a smaller one, which boots in a tenth of a second: compiles for two to three minutes"
	@echo "make appliances  what \`virtbench appliance build\` needs of the distribution"
	@echo "make deb      the Debian package: target/debian/virtbench_*.deb"
	@echo "make deb-check  it is installed, used and removed in bare roots of Debian 12 and 13"
	@echo "make container-check  contrib/Containerfile is built from it, and the command used in it"
	@echo "make study-check  what the README says first, in a bare root of Debian: make study, then the report card"
	@echo "make dist     static tarballs for other distributions, checksums and a list of what they are made of: target/dist"
	@echo "make dist-check  they are started in a root of Debian 11, in an empty one, and for another kind of machine emulated"
	@echo "make dist-again  they are built once more in another folder: the digests have to be the same"
	@echo "make install  install the command, its manual pages and completions (PREFIX=/usr/local)"

# Half of the usual time a point: with two platforms beside native a first report in two and a half minutes. Its intervals say what that
# leaves open.
STUDY_TIMES ?= --ramp 200ms --time 600ms
study: setup-study build
	$(VIRTBENCH) doctor --quiet
	$(VIRTBENCH) study native-vs-vm --grid quick $(STUDY_TIMES) --out "$(OUT)-$$(date +%Y%m%d-%H%M%S)"

# What each tier takes is in CONTRIBUTING.md.
check: setup-check
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	CARGO=$(CARGO) scripts/test.sh check

test: setup-test
	CARGO=$(CARGO) scripts/test.sh

SOAK_OPERATIONS ?= 5000000
SOAK_SEEDS ?= 1000000
SOAK_KILLS ?= 200
SOAK_FLIPS ?= 100000
SOAK_DAEMON_FLIPS ?= 300
SOAK_POWER_FAILURES ?= 1000
SOAK_FENCE_ROUNDS ?= 500
SOAK_CONFORMANCE ?= 20
SOAK_VMS ?= 10000
soak: setup-test
	VIRTBENCH_SEEDS=$(SOAK_SEEDS) $(CARGO) test --release --locked -p virtbench-fence --test all crash:: -- --nocapture
	VIRTBENCH_MODEL_OPERATIONS=$(SOAK_OPERATIONS) $(CARGO) test --release --locked -p virtbench-fence-daemon --test all nbd_model:: -- --nocapture
	VIRTBENCH_FLIPS=$(SOAK_FLIPS) $(CARGO) test --release --locked -p virtbench-fence --test all flips:: -- --nocapture
	VIRTBENCH_FLIPS=$(SOAK_DAEMON_FLIPS) $(CARGO) test --locked -p virtbench --test command fence_newest::a_damaged_device_is_refused_or_served_as_it_was_written -- --exact --nocapture
	VIRTBENCH_KILLS=$(SOAK_KILLS) $(CARGO) test --locked -p virtbench --test command fence_serve::a_cached_disk_survives_kills_under_a_verified_load -- --exact --nocapture
	VIRTBENCH_POWER_FAILURES=$(SOAK_POWER_FAILURES) $(CARGO) test --locked -p virtbench --test command fence_power:: -- --nocapture
	VIRTBENCH_FENCE_ROUNDS=$(SOAK_FENCE_ROUNDS) $(CARGO) test --locked -p virtbench --test command fence_soak:: -- --nocapture
	$(CARGO) test --locked -p virtbench --test command fence_guest:: -- --ignored --nocapture
	VIRTBENCH_VSPHERE_VMS=$(SOAK_VMS) $(CARGO) test --locked -p virtbench-vsphere --test all inventory:: -- --nocapture
	VIRTBENCH_KILLS=all $(CARGO) test --locked -p virtbench-platforms --test openstack_rights -- --nocapture
	scripts/setup-openstack.sh
	scripts/openstack-soak.sh
	$(CARGO) test --locked -p virtbench --test command desktops_office:: -- --ignored
	$(CARGO) test --locked -p virtbench --test command oltp_study:: -- --ignored
	$(CARGO) test --locked -p virtbench --test command tiles_paper:: -- --ignored
	scripts/pass-rate.sh $(SOAK_CONFORMANCE) $(SOAK_CONFORMANCE) $(CARGO) test --locked -p virtbench-fence-daemon --test all conformance:: -- --ignored

bench: setup-bench
	scripts/setup-openstack.sh
	$(CARGO) build --release --locked -p virtbench
	$(CARGO) run --release --locked -p virtbench-bench
	$(CARGO) run --release --locked -p virtbench-study --example surface_replay -- target/surface-replay.img

profile: setup-bench
	$(CARGO) build --release --locked -p virtbench
	$(CARGO) run --release --locked -p virtbench-bench -- profile > target/profile.txt
	mv target/profile.txt docs/profile.txt

# Kernels of User Mode Linux guests, for environments `uml:`: the distribution's, and a small one that is compiled.
uml:
	scripts/setup-uml.sh

uml-kernel:
	scripts/setup.sh uml-kernel
	scripts/uml-kernel.sh

PREDICT_TILES = $(INSTALLED) study tiles --accelerator uml --predict --tiles 1,2,3 --repetitions 1 --ramp 10s --time 15s
STORAGES = virtio-blk virtio-blk,cache=writeback virtio-blk,cache=directsync virtio-blk,iops=500 virtio-blk,delay=5ms \
	vhost-user-blk@fence,scheduler=HDD+NWC,slow=file,slot=20ms
check-predictions: setup-predictions whole
	$(INSTALLED) study predictions --cases docs/data/predictions.toml --trials 3 --out out/predictions \
		$(if $(wildcard out/predictions/run.json),--resume)
	$(INSTALLED) study predictions --cases docs/data/once-unseen.toml --accelerator uml --vcpus 1 --trials 3 --out out/predictions-uml \
		$(if $(wildcard out/predictions-uml/run.json),--resume)
	$(INSTALLED) study predictions --cases docs/data/unseen.toml --accelerator uml --vcpus 1 --trials 3 --out out/predictions-unseen \
		$(if $(wildcard out/predictions-unseen/run.json),--resume)
	$(INSTALLED) study predictions --cases docs/data/held-out.toml --accelerator tcg --vcpus 1 --trials 1 --out out/predictions-tcg \
		$(if $(wildcard out/predictions-tcg/run.json),--resume)
	$(INSTALLED) study predictions --cases docs/data/held-out.toml --accelerator uml --vcpus 1 --trials 1 --out out/predictions-storages \
		$(foreach storage,$(STORAGES),--storage $(storage)) $(if $(wildcard out/predictions-storages/run.json),--resume)
	$(INSTALLED) study predictions --cases docs/data/fresh.toml --accelerator uml --vcpus 1 --trials 3 --out out/predictions-fresh \
		$(if $(wildcard out/predictions-fresh/run.json),--resume)
	$(INSTALLED) study predictions --cases docs/data/fresh.toml --accelerator uml --vcpus 1 --trials 1 --out out/predictions-fresh-storages \
		$(foreach storage,$(STORAGES),--storage $(storage)) $(if $(wildcard out/predictions-fresh-storages/run.json),--resume)
	$(PREDICT_TILES) --tile docs/data/tile-busy.toml --out out/tile-busy $(if $(wildcard out/tile-busy/run.json),--resume)
	$(PREDICT_TILES) --tile docs/data/tile-mixed.toml --out out/tile-mixed $(if $(wildcard out/tile-mixed/run.json),--resume)

# How often `virtbench compare` alarms where nothing changed, and finds what did: forty runs, half an hour.
check-regressions: setup-study setup-predictions whole
	VIRTBENCH=$(INSTALLED) scripts/regressions-check.sh

# A system whose results are in out/deviation is not measured again: remove the folder to begin anew. The tables for
# docs/deviation.md are table.md in the two folders: what the documents quote, fenced and unfenced in one run, three
# repetitions; and every way of sharing, once.
DEVIATION_TIME ?= 25s
DEVIATION_SYSTEMS ?= none,VirtualFence,VirtualFence:30ms
DEVIATION_REPETITIONS ?= 3
DEVIATION_RUN = $(INSTALLED) study deviation --workload load:size=4k,read=50,random=100,outstanding=8 --size 16MiB \
	--memory 128MiB --resume
deviation: setup-study whole
	$(DEVIATION_RUN) --systems $(DEVIATION_SYSTEMS) --repetitions $(DEVIATION_REPETITIONS) --time 40s --out out/deviation
	$(DEVIATION_RUN) --systems all --repetitions 1 --time $(DEVIATION_TIME) --out out/deviation-all

papers: setup-test setup-predictions whole
	scripts/papers.sh

# The simulated evaluation of [VirtualFence 2013], as the documents count it.
evaluation: whole
	mkdir -p out
	$(INSTALLED) fence simulate --html out/fence.html --json > docs/data/fence-evaluation.json

lint: setup-lint
	$(CARGO) fmt --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --locked --no-default-features -p virtbench -p virtbench-agent -- -D warnings
	$(CARGO) clippy --locked --target x86_64-pc-windows-gnu -p virtbench-agent -- -D warnings

doc-check: setup-lint
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

licences: setup-study
	scripts/deny.sh

# Other people's files of fio and Iometer, in a folder of any shape.
public-files:
	PUBLIC_FILES=$(abspath $(PUBLIC_FILES)) $(CARGO) test --locked -p virtbench-formats --test all public_files:: -- --ignored --nocapture

# The job files are fio's own: the folder `examples` of its source.
fio-examples:
	FIO_EXAMPLES=$(abspath $(FIO_EXAMPLES)) $(CARGO) test --locked -p virtbench-formats --test all fio_examples:: -- --ignored

fuzz:
	scripts/fuzz.sh $(FUZZ_SECONDS)

# The command with what compares storage, and the agent beside it: both static, so that what they share is built once.
build:
	$(CARGO) build --profile study --locked --target $(STATIC) --no-default-features -p virtbench -p virtbench-agent
	mkdir -p $(STUDY_BUILD)
	ln -f target/$(STATIC)/study/virtbench target/$(STATIC)/study/virtbench-agent $(STUDY_BUILD)

# The whole command. The agent for machines of another kind is built for an installed command and for tests.
bench profile whole: export VIRTBENCH_AGENTS = host
whole:
	$(CARGO) build --release --locked -p virtbench

# The Debian package, and its trial in bare roots of Debian 12 and 13, which needs root.
deb: setup-package
	scripts/deb.sh
deb-check: setup-package
	scripts/deb-check.sh

container-check: setup-package
	scripts/container-check.sh

# What the README says first, in a bare root; needs root.
study-check: setup-package
	scripts/study-check.sh

# Tarballs for other distributions, and their trial in roots with an older C library and with none.
dist: setup-package
	scripts/dist.sh
dist-check: setup-package
	scripts/dist-check.sh
dist-again: setup-package
	scripts/dist-again.sh

PREFIX ?= /usr/local
install: setup-install
	$(CARGO) build --release --locked -p virtbench
	install -Dm755 --strip $(INSTALLED) $(DESTDIR)$(PREFIX)/bin/virtbench
	$(INSTALLED) man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	$(INSTALLED) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/virtbench
	$(INSTALLED) completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_virtbench

setup: setup-study
setup-study:
	scripts/setup.sh study
setup-check:
	scripts/setup.sh check
setup-install:
	scripts/setup.sh install
setup-package:
	scripts/setup.sh package
setup-test:
	scripts/setup.sh test
setup-lint:
	scripts/setup.sh lint
setup-predictions:
	scripts/setup.sh predictions
appliances:
	scripts/setup.sh appliances
setup-bench:
	scripts/setup.sh bench

clean:
	$(CARGO) clean
