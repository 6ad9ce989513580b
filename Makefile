# Two commands do everything on a fresh machine: `make lab` and `make test`.
.PHONY: lab test setup

# A language that is not installed (5) and a machine too noisy for a verdict (7) are rows that say so.
# All programs are named each time, so that cargo chooses one set of features and builds nothing twice.
lab_programs := -p weigh -p planets -p gateway -p conform

lab: setup ## installs what is missing, builds, finds a planted delay, runs the main lab quickly, prints its three tables
	@began=$$(date +%s); \
	cargo build --locked --quiet --release $(lab_programs) --bin weigh || exit 1; \
	target/release/weigh demo || exit $$?; \
	first=$$(date +%s); \
	cargo build --locked --quiet --release $(lab_programs) && built=$$(date +%s) || exit 1; \
	target/release/weigh lab router-extensibility --quick --with beside=weigh; code=$$?; ended=$$(date +%s); \
	echo "make lab: first answer after $$((first - began)) s; systems built in $$((built - first)) s; coprocessors built, all proven and measured in $$((ended - built)) s" >&2; \
	case $$code in \
	  0) ;; \
	  5) echo "make lab: rows with NOT RUN say what is missing" >&2 ;; \
	  7) echo "make lab: a check withheld a verdict; the table says which, docs/checks.md what to do" >&2 ;; \
	  *) exit $$code ;; \
	esac

# Not `cargo xtask`: with features of its own, cargo would build the dependencies of xtask once more.
test: ## installs what is missing, runs every test, prints how long each part took
	@began=$$(date +%s); \
	./setup test || exit $$?; \
	installed=$$(date +%s); \
	cargo build --locked --quiet --bin xtask || exit $$?; \
	built=$$(date +%s); \
	cargo run --locked --quiet --bin xtask -- ci; code=$$?; ended=$$(date +%s); \
	echo "make test: setup in $$((installed - began)) s; xtask built in $$((built - installed)) s; its steps took $$((ended - built)) s; $$((ended - began)) s in all" >&2; \
	exit $$code

setup: ## installs what is missing (Debian, Ubuntu), says what to install elsewhere
	./setup
