//! The five places to travel to, and travelers' opinions about them.
//!
//! Texts are fixed: the same query has the same response in every run and on every machine.

/// A place in both subgraphs.
pub(crate) struct Place {
    /// The key that both subgraphs share.
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) photo: &'static str,
    pub(crate) reviews: &'static [Opinion],
}

/// One traveler's review.
pub(crate) struct Opinion {
    pub(crate) id: &'static str,
    pub(crate) comment: &'static str,
    /// From 1, the worst, to 5.
    pub(crate) rating: u8,
}

/// The place with this id.
pub(crate) fn place(id: &str) -> Option<&'static Place> {
    PLACES.iter().find(|place| place.id == id)
}

impl Place {
    /// The mean of all ratings. `None` without reviews.
    pub(crate) fn overall_rating(&self) -> Option<f64> {
        let sum: u32 = self
            .reviews
            .iter()
            .map(|review| u32::from(review.rating))
            .sum();
        let count = u32::try_from(self.reviews.len())
            .ok()
            .filter(|count| *count > 0)?;
        Some(f64::from(sum) / f64::from(count))
    }
}

/// All places, in the order of the catalog.
pub(crate) const PLACES: &[Place] = &[
    Place {
        id: "loc-1",
        name: "The tide gardens of Ossia",
        description: "Ossia turns so slowly that its single ocean follows the sun like a guest who will not leave. Twice in a local day the water comes up through the ground instead of over the shore, and for about an hour every meadow is a shallow pool of warm, green light. The plants have learned to use the hour: they open, trade pollen with whatever swims past, and close again before the water sinks. Visitors walk on bridges of woven root that rise and fall with the tide. Bring shoes that dry quickly, and do not lean over the railing when the gardens close, because they do so all at once and from every side.",
        photo: "https://planets.example/photos/loc-1/tide-gardens-at-noon-1920x1080.webp",
        reviews: &[
            Opinion {
                id: "rev-1",
                comment: "We came for the gardens and stayed for the sound they make when they close. Our guide knew every bridge by its first name, and she was right about the shoes.",
                rating: 5,
            },
            Opinion {
                id: "rev-2",
                comment: "Beautiful, but the day is forty hours long and breakfast is served once.",
                rating: 3,
            },
            Opinion {
                id: "rev-3",
                comment: "The warm hour is worth the whole journey. I have never seen children so quiet for so long, and mine are not known for it.",
                rating: 5,
            },
            Opinion {
                id: "rev-4",
                comment: "Everything as described, down to the railing. The bridge keepers tell you when to go, and you should listen to them; my hat did not.",
                rating: 4,
            },
        ],
    },
    Place {
        id: "loc-2",
        name: "The glass dunes of Tarn",
        description: "Lightning falls on Tarn every evening, always on the same desert, and where it falls the sand melts and sets before it can run. After some ten thousand years of this the dunes ring. A light wind plays the small ones like the rims of glasses, a strong one is heard from orbit, and the people who live at the edge of the desert tune their instruments by the season. Tours start before dawn, when the glass is cold and holds a person's weight, and end at noon in the shade of the largest dune, which is hollow, lets in a brown light, and is said to answer when it is asked politely. Eye protection is lent at the gate. Singing is welcome, whistling is not.",
        photo: "https://planets.example/photos/loc-2/glass-dunes-before-dawn-1920x1080.webp",
        reviews: &[
            Opinion {
                id: "rev-5",
                comment: "I play the cello and I have thought about nothing else since. Take the early tour, take a second one, and take somebody along who can carry you out.",
                rating: 5,
            },
            Opinion {
                id: "rev-6",
                comment: "Hot, loud and full of glass. My brother loved it.",
                rating: 2,
            },
            Opinion {
                id: "rev-7",
                comment: "The hollow dune answered. I will not say what I had asked, but the answer was fair, and it was in tune.",
                rating: 5,
            },
            Opinion {
                id: "rev-8",
                comment: "They are serious about whistling. Apart from that the friendliest place I know, and the evening storm from the terrace is free.",
                rating: 4,
            },
        ],
    },
    Place {
        id: "loc-3",
        name: "The lending forest of Mirrum",
        description: "Nothing on Mirrum owns anything. A tree that has water to spare passes it on through a net of roots that spans the continent, a fungus keeps the accounts, and the animals carry what roots cannot. Whoever takes must give within the year, in whatever coin it has: shade, seeds, song, or the patient turning of the soil. Botanists have followed a single drop of rain for three thousand kilometers through forty debtors. Guests are asked to take part, and most find that they like it. You will be lent a bed, a lantern and a name for the length of your stay; on leaving you hand them on to the next in line, with a story about each, which becomes part of the thing.",
        photo: "https://planets.example/photos/loc-3/lending-forest-roots-1920x1080.webp",
        reviews: &[Opinion {
            id: "rev-9",
            comment: "I was lent the name of a woman who had been afraid of the dark, and a lantern that had been to sea. I gave back both in better shape, and so was I.",
            rating: 5,
        }],
    },
    Place {
        id: "loc-4",
        name: "The slow cities of Hale",
        description: "The cities of Hale walk. Each stands on the backs of a few hundred patient animals, no taller than a house, that graze their way around the equator once in a lifetime. Streets bend as the herd turns; a square may be wide in the morning and an alley at night. Hotels move at the speed of a short walk, so one can step off, look at a waterfall, and catch up by tea. The only thing that a visitor can do wrong is to hurry.",
        photo: "https://planets.example/photos/loc-4/slow-city-at-the-ford-1920x1080.webp",
        reviews: &[Opinion {
            id: "rev-10",
            comment: "Our room had a view of the sea on Monday and of the hills on Friday, and nobody charged us for either. We missed the city once and it waited.",
            rating: 4,
        }],
    },
    Place {
        id: "loc-5",
        name: "The night market of Quill",
        description: "Quill has no sun and has never missed one. Everything that lives there makes its own light, in more colors than there are words for, and trades it: a moth's blue for a lamp fish's gold, a child's first spark for a cake. The market opens when the first stall glows and closes when the last one sleeps, which has not happened yet.",
        photo: "https://planets.example/photos/loc-5/night-market-stalls-1920x1080.webp",
        reviews: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_ratings_are_stars() {
        let mut ids: Vec<&str> = PLACES
            .iter()
            .flat_map(|place| {
                place
                    .reviews
                    .iter()
                    .map(|review| review.id)
                    .chain([place.id])
            })
            .collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(
            PLACES
                .iter()
                .flat_map(|place| place.reviews)
                .all(|review| (1..=5).contains(&review.rating))
        );
    }

    #[test]
    fn the_overall_rating_is_the_mean_and_unknown_without_reviews() {
        let ratings: Vec<Option<f64>> = PLACES.iter().map(Place::overall_rating).collect();
        assert_eq!(ratings, [Some(4.25), Some(4.0), Some(5.0), Some(4.0), None]);
    }
}
