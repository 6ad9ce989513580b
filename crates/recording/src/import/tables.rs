//! The tables of fields of each kind of file: names of figures, units, failures and conditions.

mod programs_in_c;
mod requests;
mod scenarios;

pub(super) use programs_in_c::{H2LOAD, SIEGE, SIEGE_TEXT, WRK_SCRIPT, WRK_SCRIPT_WITHOUT_UNIT};
pub(super) use requests::{
    BOMBARDIER, FORTIO, GHZ, GHZ_TEXT, HEY_TEXT, NIGHTHAWK, OHA, OHA_TEXT, VEGETA,
};
pub(super) use scenarios::{
    ARTILLERY, ARTILLERY_1, AUTOCANNON, GATLING, GATLING_GLOBAL, HYPERFOIL, JMETER_AGGREGATE,
    JMETER_FAILURES, JMETER_STATISTICS, LOCUST,
};
