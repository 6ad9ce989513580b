//! Drawing of a flamegraph as one self-contained SVG file.

use recording::digits;

use super::tree::Frame;
use super::{Scale, Stacks};
use crate::xml::escape;

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const FRAME_HEIGHT: f64 = 17.0;
const TOP: f64 = 54.0;
/// Minimum width of a frame. Narrower frames would be invisible.
const LEAST_WIDTH: f64 = 0.3;
/// Width of a letter of the fixed-width font in frames.
const LETTER_WIDTH: f64 = 6.6;

const STYLE: &str = "\
svg{background:#fff}text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#111}\
.title{font:600 15px system-ui,sans-serif}.note{font:12px system-ui,sans-serif;fill:#555}\
g.f{cursor:pointer}g.f:hover rect{stroke:#111;stroke-width:.7}g.f text{pointer-events:none}\
g.found rect{stroke:#6a1b9a;stroke-width:2}";

/// Zooms to a frame on a click, and out again on a click on the lowest frame. Ctrl-F opens a search.
const SCRIPT: &str = r#"
const all=[...document.querySelectorAll('g.f')],W=1180,M=10,L=6.6;
function place(x0,w0){for(const g of all){const x=+g.dataset.x,w=+g.dataset.w,r=g.querySelector('rect'),t=g.querySelector('text');
const a=Math.max(x,x0),b=Math.min(x+w,x0+w0),v=(b-a)/w0*W;g.style.display=v>.3?'':'none';if(v<=.3)continue;
r.setAttribute('x',M+(a-x0)/w0*W);r.setAttribute('width',v);t.setAttribute('x',M+(a-x0)/w0*W+3);
const n=g.dataset.n,k=Math.floor((v-6)/L);t.textContent=k<3?'':n.length<=k?n:n.slice(0,k-1)+'…';}}
for(const g of all)g.addEventListener('click',()=>place(+g.dataset.x,+g.dataset.w));
document.addEventListener('keydown',e=>{if((e.ctrlKey||e.metaKey)&&e.key==='f'){e.preventDefault();
const q=prompt('Mark functions by name:');for(const g of all)g.classList.toggle('found',!!q&&g.dataset.n.includes(q));}});
"#;

/// The functions that use the processor time of one system.
pub fn svg(title: &str, stacks: &Stacks, scale: &Scale) -> String {
    let root = Frame::of(stacks, scale);
    let note = format!(
        "{}. Width is processor time. A function stands on its caller. Click to zoom, Ctrl-F to search",
        describe(scale)
    );
    let drawing = Drawing {
        title,
        note: &note,
        is_inline: false,
    };
    draw(&drawing, &root, &|name, _| warm(name), &|frame| {
        amount(frame.amount, root.amount, scale)
    })
}

/// The functions of one system in the colors of a comparison. A function is red if it takes more than in
/// `before`, and blue if it takes less.
pub fn difference_svg(
    title: &str,
    stacks: &Stacks,
    scale: &Scale,
    before: &Stacks,
    before_scale: &Scale,
) -> String {
    let note = format!(
        "{}. Red functions take more time than in the baseline, blue functions less. Click to zoom, Ctrl-F to search",
        describe(scale)
    );
    let drawing = Drawing {
        title,
        note: &note,
        is_inline: false,
    };
    let root = Frame::of(stacks, scale).compared_with(before, before_scale);
    difference(&drawing, &root, scale)
}

/// Like [`difference_svg`], as an element of a page. It has no script and no style, because both would apply
/// to the whole page.
pub(crate) fn inline_difference(
    title: &str,
    stacks: &Stacks,
    scale: &Scale,
    before: &Stacks,
    before_scale: &Scale,
) -> String {
    let drawing = Drawing {
        title,
        note: &describe(scale),
        is_inline: true,
    };
    let root = Frame::of(stacks, scale).compared_with(before, before_scale);
    difference(&drawing, &root, scale)
}

fn difference(drawing: &Drawing<'_>, root: &Frame, scale: &Scale) -> String {
    // The value is never 0, because an unchanged graph would divide by it.
    let most = most_change(root).max(f64::MIN_POSITIVE);
    let color = |_: &str, frame: &Frame| diverging((frame.amount - frame.before) / most);
    draw(drawing, root, &color, &|frame| {
        let change = frame.amount - frame.before;
        let sign = if change >= 0.0 { "+" } else { "−" };
        let size = shown(change.abs(), scale);
        format!(
            "{}, {sign}{size} against the baseline",
            amount(frame.amount, root.amount, scale)
        )
    })
}

fn describe(scale: &Scale) -> String {
    let samples = recording::describe::plural(scale.samples, "sample");
    match scale.cpu_us_per_request {
        Some(us) => format!("{} us of CPU a request, {samples}", digits::value(us, None)),
        None => samples,
    }
}

fn shown(amount: f64, scale: &Scale) -> String {
    match scale.cpu_us_per_request {
        Some(_) => format!("{} us/request", digits::value(amount, None)),
        None => digits::percent(amount),
    }
}

fn amount(amount: f64, all: f64, scale: &Scale) -> String {
    // The share is rounded to a tenth of a percent, so that noise does not show as different digits in
    // adjacent frames.
    let share = digits::percent((amount / all * 1000.0).round() / 1000.0);
    match scale.cpu_us_per_request {
        Some(_) => format!("{}, {share}", shown(amount, scale)),
        None => share,
    }
}

/// The largest change of any frame except the root. The root's change is the total change.
fn most_change(frame: &Frame) -> f64 {
    let own = (frame.amount - frame.before).abs();
    let children = frame.children.values().map(most_change);
    children.fold(own, f64::max)
}

type Color<'a> = dyn Fn(&str, &Frame) -> String + 'a;
type Label<'a> = dyn Fn(&Frame) -> String + 'a;

/// The texts and the form of a drawing.
struct Drawing<'a> {
    title: &'a str,
    note: &'a str,
    /// True for an element of a page. False for a file with its own style and script.
    is_inline: bool,
}

impl Drawing<'_> {
    fn head(&self, height: f64) -> String {
        let (title, note) = (escape(self.title), escape(self.note));
        let element = match self.is_inline {
            true => format!(
                "<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" role=\"img\"><title>{title}</title>"
            ),
            false => format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
                 width=\"{WIDTH}\" height=\"{height}\" role=\"img\"><title>{title}</title>\
                 <style>{STYLE}</style>"
            ),
        };
        format!(
            "{element}<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\
             <text class=\"title\" x=\"{MARGIN}\" y=\"22\">{title}</text>\
             <text class=\"note\" x=\"{MARGIN}\" y=\"42\">{note}</text>\n"
        )
    }

    fn tail(&self) -> String {
        match self.is_inline {
            true => "</svg>\n".to_owned(),
            false => format!("<script><![CDATA[{SCRIPT}]]></script></svg>\n"),
        }
    }
}

fn draw(drawing: &Drawing<'_>, root: &Frame, color: &Color<'_>, label: &Label<'_>) -> String {
    let span = WIDTH - 2.0 * MARGIN;
    let least = root.amount * LEAST_WIDTH / span;
    // More levels than fit into 32 bits cannot be drawn in any case.
    let levels = u32::try_from(root.depth(least)).unwrap_or(u32::MAX);
    let height = TOP + f64::from(levels) * FRAME_HEIGHT + MARGIN;
    let mut out = drawing.head(height);
    // Without samples the width of a frame would be infinite.
    if root.samples == 0 {
        out += "</svg>\n";
        return out;
    }
    let mut pen = Pen {
        out,
        floor: height - MARGIN - FRAME_HEIGHT,
        scale: span / root.amount,
        color,
        label,
    };
    pen.frame("all", root, MARGIN, 0.0);
    pen.out + &drawing.tail()
}

struct Pen<'a> {
    out: String,
    /// The top of the lowest frame.
    floor: f64,
    /// Points of the drawing per unit of the amount.
    scale: f64,
    color: &'a Color<'a>,
    label: &'a Label<'a>,
}

impl Pen<'_> {
    fn frame(&mut self, name: &str, frame: &Frame, x: f64, level: f64) {
        let width = frame.amount * self.scale;
        // Child frames are even narrower, so the whole subtree ends here. This keeps the file small.
        if width < LEAST_WIDTH {
            return;
        }
        let y = self.floor - level * FRAME_HEIGHT;
        let name_escaped = escape(name);
        self.out += &format!(
            "<g class=\"f\" data-x=\"{x:.2}\" data-w=\"{width:.2}\" data-n=\"{name_escaped}\">\
             <title>{name_escaped}: {label}</title>\
             <rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{height}\" rx=\"1\" fill=\"{fill}\"/>\
             <text x=\"{text_x:.2}\" y=\"{text_y}\">{short}</text></g>\n",
            label = escape(&(self.label)(frame)),
            height = FRAME_HEIGHT - 1.0,
            fill = (self.color)(name, frame),
            text_x = x + 3.0,
            text_y = y + 12.0,
            short = escape(&short(name, width)),
        );
        let mut child_x = x;
        for (child_name, child) in &frame.children {
            self.frame(child_name, child, child_x, level + 1.0);
            child_x += child.amount * self.scale;
        }
    }
}

/// The part of a name that fits.
fn short(name: &str, width: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few hundred letters at most; a negative width holds none"
    )]
    let letters = ((width - 6.0) / LETTER_WIDTH).max(0.0) as usize;
    if letters < 3 {
        String::new()
    } else if name.chars().count() <= letters {
        name.to_owned()
    } else {
        let kept: String = name.chars().take(letters - 1).collect();
        kept + "…"
    }
}

/// A color from yellow to red that depends on the name, so that a function has one color in all graphs. The
/// kernel is orange-brown.
fn warm(name: &str) -> String {
    // FNV-1a: a stable hash, because the standard library's may change between versions.
    let hash = name.bytes().fold(2_166_136_261_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
    });
    let (hue, light) = (hash % 38, 66 + hash / 64 % 12);
    if name.ends_with("[kernel]") {
        return format!("hsl({},45%,{light}%)", 25 + hue / 4);
    }
    format!("hsl({},85%,{light}%)", 12 + hue)
}

/// Red for 1, white for 0, blue for -1.
fn diverging(change: f64) -> String {
    // The square root shows small changes, which a linear scale would leave white.
    let strength = change.abs().min(1.0).sqrt();
    let hue = if change >= 0.0 { 8 } else { 215 };
    format!("hsl({hue},80%,{:.0}%)", 97.0 - 37.0 * strength)
}
