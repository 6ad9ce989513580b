# Two commands do everything on a fresh machine: `make lab` and `make test`.
.PHONY: lab test setup

lab: setup ## installs what is missing, builds, runs the main lab quickly, prints the table
	cargo run --quiet --release --package weigh -- lab graphql-server --quick

test: ## installs what is missing, runs every test
	./setup test
	cargo xtask ci

setup: ## installs what is missing (Debian, Ubuntu), says what to install elsewhere
	./setup
