//! Assigns the groups of deferred fragments to the parts of one response.

use crate::checked::Checked;
use crate::deferral::Deferral;
use crate::projection::Member;
use crate::variables::Variables;

/// Groups as bits. There are fewer than 64, including group 0.
pub(super) type Bits = u64;

pub(super) const fn bit(group: usize) -> Bits {
    1 << group
}

/// The groups that are sent as separate parts, and their content.
pub(super) struct Delivery<'a> {
    checked: &'a Checked,
    variables: &'a Variables,
    deferral: &'a Deferral,
    /// The group that each group is sent with.
    with: Vec<usize>,
    /// The groups that deliver each presence.
    presences: Vec<Bits>,
}

impl<'a> Delivery<'a> {
    pub(super) fn new(
        checked: &'a Checked,
        variables: &'a Variables,
        deferral: &'a Deferral,
    ) -> Self {
        let groups = &checked.projection.groups;
        let mut with = vec![0];
        for number in groups.numbers() {
            let group = groups.get(number);
            let is_wanted = group
                .condition
                .is_none_or(|variable| checked.truth(variable, variables));
            let own = is_wanted && !deferral.is_idle(groups, number);
            with.push(if own { number } else { with[group.parent] });
        }
        let mut delivery = Delivery {
            checked,
            variables,
            deferral,
            with,
            presences: Vec::new(),
        };
        delivery.find_presences();
        delivery
    }

    fn find_presences(&mut self) {
        let (checked, variables, with) = (self.checked, self.variables, &self.with);
        let presences = checked.projection.presences.iter().map(|clauses| {
            let holding = clauses.iter().filter(|it| checked.holds(it, variables));
            holding.fold(0, |bits, clause| bits | bit(with[clause.group]))
        });
        self.presences = presences.collect();
    }

    /// True if a group is sent as a separate part.
    pub(super) fn is_divided(&self) -> bool {
        self.with.iter().any(|it| *it != 0)
    }

    /// Joins a group to its surrounding group.
    pub(super) fn join(&mut self, group: usize) {
        let around = self.with[self.checked.projection.groups.get(group).parent];
        for with in &mut self.with {
            if *with == group {
                *with = around;
            }
        }
        self.find_presences();
    }

    /// The groups that are sent as separate parts, without group 0. Outer groups come first.
    pub(super) fn parts(&self) -> impl Iterator<Item = usize> {
        let own = self.with.iter().enumerate().skip(1);
        own.filter_map(|(number, with)| (number == *with).then_some(number))
    }

    /// The part that contains the places of this part.
    pub(super) fn around(&self, part: usize) -> usize {
        self.with[self.checked.projection.groups.get(part).parent]
    }

    pub(super) fn label(&self, part: usize) -> Option<&'a str> {
        self.checked.projection.groups.get(part).label.as_deref()
    }

    /// The requests that a part needs in addition to the first part's requests.
    pub(super) fn needs(&self, part: usize) -> impl Iterator<Item = &'a [usize]> {
        let deferral = self.deferral;
        let members = self.with.iter().enumerate().skip(1);
        let members: Vec<usize> = members
            .filter_map(|(number, with)| (*with == part).then_some(number))
            .collect();
        members
            .into_iter()
            .map(|number| deferral.needs[number - 1].as_slice())
    }

    /// The planned requests of the first part.
    pub(super) fn first(&self) -> Option<&'a crate::plan::Step> {
        self.deferral.first.as_ref()
    }

    /// The groups that deliver a member.
    pub(super) fn delivers(&self, member: &Member) -> Bits {
        member.presence.map_or(0, |index| self.presences[index])
    }

    /// The members of a part, without the members that a part in `sent` has delivered.
    pub(super) fn members(&self, part: usize, sent: Bits) -> Vec<bool> {
        let all = self.presences.iter();
        all.map(|bits| bits & bit(part) != 0 && bits & sent == 0)
            .collect()
    }

    /// The groups of the fragments that a part announces, by anchor.
    pub(super) fn anchors(&self, part: usize) -> Vec<Option<usize>> {
        let anchors = self.checked.projection.anchors.iter();
        anchors
            .map(|anchor| {
                let is_own = self.with[anchor.group] == anchor.group;
                let mut clauses = anchor.clauses.iter();
                let is_here = is_own
                    && clauses.any(|clause| {
                        self.with[clause.group] == part
                            && self.checked.holds(clause, self.variables)
                    });
                is_here.then_some(anchor.group)
            })
            .collect()
    }
}
