//! Line charts as SVG.

use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One or several panels, two side by side, with one legend below.
pub struct Chart {
    /// Left to right, then down.
    pub panels: Vec<Panel>,
}

/// Lines over a row of places.
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Under the axis.
    pub x_name: &'static str,
    /// The places, from left to right.
    pub places: Vec<String>,
    /// Beside the axis, with the unit.
    pub y_name: &'static str,
    /// Whether the axis is logarithmic.
    pub log: bool,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line; the same name has the same colour in all panels.
pub struct Line {
    /// In the legend.
    pub name: String,
    /// Numbers of places, and values.
    pub points: Vec<(usize, f64)>,
}

/// Width and height of a panel, and the width of one that stands alone.
const PANEL: (u32, u32) = (470, 390);
const ALONE: u32 = 640;
/// What names and numbers take beside and below a panel.
const BESIDE: u32 = 76;
const BELOW: u32 = 52;
const LEGEND_ROW: i32 = 24;
/// The library counts 1.24 of its units to a pixel.
const TITLE: u32 = 20;
const NAMES: u32 = 17;
const NUMBERS: u32 = 16;
/// About how wide a letter of a name is, in pixels.
const LETTER: i32 = 8;
const GREY: RGBColor = RGBColor(90, 90, 90);
/// Okabe and Ito's colours, which people with any kind of sight tell apart, without the yellow, which white swallows.
const COLOURS: [RGBColor; 9] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(200, 135, 0),
    RGBColor(86, 180, 233),
    RGBColor(110, 110, 110),
    RGBColor(120, 70, 30),
];

impl Chart {
    /// The file's text.
    pub fn svg(&self) -> Result<String> {
        let mut names: Vec<&str> = Vec::new();
        for line in self.panels.iter().flat_map(|panel| &panel.lines) {
            if !line.points.is_empty() && !names.contains(&line.name.as_str()) {
                names.push(&line.name);
            }
        }
        let columns = self.panels.len().min(2);
        let rows = self.panels.len().div_ceil(2);
        let width = if columns == 1 { ALONE } else { 2 * PANEL.0 };
        // Where the names stand: from left to right, in as many rows as they need.
        let (mut places, mut at) = (Vec::new(), (BESIDE as i32, 0));
        for name in &names {
            let wide = 37 + name.chars().count() as i32 * LETTER + 22;
            if at.0 + wide > width as i32 && at.0 > BESIDE as i32 {
                at = (BESIDE as i32, at.1 + LEGEND_ROW);
            }
            places.push(at);
            at.0 += wide;
        }
        let height = PANEL.1 * rows as u32;
        let legend = at.1 + LEGEND_ROW + 10;
        let mut text = String::new();
        {
            let area =
                SVGBackend::with_string(&mut text, (width, height + legend as u32)).into_drawing_area();
            area.fill(&WHITE).map_err(failed)?;
            let (above, below) = area.split_vertically(height);
            for (area, panel) in above.split_evenly((rows, columns)).iter().zip(&self.panels) {
                panel.draw(area, &names, (width / columns as u32 - BESIDE) as usize - 20)?;
            }
            for (i, (name, (x, y))) in names.iter().zip(places).enumerate() {
                let y = y + LEGEND_ROW / 2;
                let line = PathElement::new([(x, y), (x + 28, y)], colour(i).stroke_width(2));
                below.draw(&line).map_err(failed)?;
                below.draw(&mark(i, (x + 14, y))).map_err(failed)?;
                let style =
                    ("sans-serif", NAMES).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
                below.draw(&Text::new((*name).to_owned(), (x + 36, y), style)).map_err(failed)?;
            }
            area.present().map_err(failed)?;
        }
        text.push('\n');
        Ok(text)
    }
}

impl Panel {
    /// Within an axis of so many pixels.
    fn draw(
        &self,
        area: &DrawingArea<SVGBackend, plotters::coord::Shift>,
        names: &[&str],
        width: usize,
    ) -> Result<()> {
        let values = || self.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        if !(high > 0.0 && low > 0.0 && low.is_finite()) {
            return Err(anyhow!("{}: nothing to draw", self.title));
        }
        let scaled = |value: f64| if self.log { value.log10() } else { value };
        let ticks = if self.log { log_ticks(low, high) } else { linear_ticks(high) };
        let bottom = if self.log { scaled(low.min(ticks[0])) - 0.03 } else { 0.0 };
        let top = scaled(high.max(*ticks.last().expect("there are ticks")));
        let top = if self.log { top + 0.03 } else { top * 1.02 };
        let last = self.places.len() - 1;
        // Names stand a letter apart.
        let widest = (self.places.iter().map(String::len).max().unwrap_or(0) + 1) * LETTER as usize;
        let every = (self.places.len() * widest).div_ceil(width);
        let marked: Vec<f64> = (0..=last).step_by(every).map(|place| place as f64).collect();
        let margin = last as f64 * 0.03;
        let x = Axis { range: -margin..last as f64 + margin, ticks: marked };
        let y = Axis { range: bottom..top, ticks: ticks.iter().map(|tick| scaled(*tick)).collect() };

        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", TITLE).into_font().color(&BLACK))
            .margin(6)
            .margin_right(14)
            .x_label_area_size(BELOW)
            .y_label_area_size(BESIDE)
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        let place = |x: &f64| self.places.get(x.round() as usize).cloned().unwrap_or_default();
        let value = |y: &f64| number(if self.log { 10f64.powf(*y) } else { *y });
        chart
            .configure_mesh()
            .bold_line_style(RGBColor(222, 222, 222))
            .light_line_style(RGBColor(222, 222, 222))
            .axis_style(GREY)
            .label_style(("sans-serif", NUMBERS).into_font().color(&BLACK))
            .axis_desc_style(("sans-serif", NAMES).into_font().color(&BLACK))
            .x_desc(self.x_name)
            .y_desc(self.y_name)
            .x_labels(self.places.len())
            .y_labels(ticks.len())
            .x_label_formatter(&place)
            .y_label_formatter(&value)
            .draw()
            .map_err(failed)?;
        for line in &self.lines {
            let Some(i) = names.iter().position(|name| *name == line.name) else { continue };
            let points: Vec<(f64, f64)> = line.points.iter().map(|(x, y)| (*x as f64, scaled(*y))).collect();
            chart
                .draw_series(LineSeries::new(points.iter().copied(), colour(i).stroke_width(2)))
                .map_err(failed)?;
            for point in points {
                chart.draw_series([EmptyElement::at(point) + mark(i, (0, 0))]).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// A linear axis with ticks where they are wanted.
struct Axis {
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let part = (value - self.range.start) / (self.range.end - self.range.start);
        limit.0 + (part * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

fn colour(i: usize) -> RGBColor {
    COLOURS[i % COLOURS.len()]
}

/// Circles, squares, triangles and diamonds, so that colours are not all that tells lines apart.
fn mark(i: usize, at: (i32, i32)) -> Polygon<(i32, i32)> {
    let corners: &[(i32, i32)] = match i % 4 {
        0 => &[(-4, -2), (-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2)],
        1 => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        2 => &[(0, -5), (5, 4), (-5, 4)],
        _ => &[(0, -5), (5, 0), (0, 5), (-5, 0)],
    };
    Polygon::new(corners.iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect::<Vec<_>>(), colour(i).filled())
}

/// From 0 to the first round number that is not below the highest.
fn linear_ticks(high: f64) -> Vec<f64> {
    let rough = high / 5.0;
    let magnitude = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].iter().map(|m| m * magnitude).find(|step| *step >= rough);
    let step = step.expect("ten times the magnitude is more");
    (0..).map(|i| f64::from(i) * step).take_while(|tick| *tick < high + step).collect()
}

/// Powers of ten, with 2 and 5 times them where there are few.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = if high / low < 150.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let mut ticks = Vec::new();
    for power in low.log10().floor() as i32..=high.log10().ceil() as i32 {
        ticks.extend(factors.iter().map(|factor| factor * 10f64.powi(power)));
    }
    // The last one that is not above the lowest, to the first that is not below the highest.
    let first = ticks.iter().rposition(|tick| *tick <= low * 1.000_001).unwrap_or(0);
    let last = ticks.iter().position(|tick| *tick >= high * 0.999_999).unwrap_or(ticks.len() - 1);
    ticks[first..=last].to_vec()
}

fn number(value: f64) -> String {
    let power = value.log10();
    if power > 4.9 && (power - power.round()).abs() < 1e-6 {
        return format!("10^{power:.0}");
    }
    // What came through a logarithm is not exact.
    let digits = (2 - value.abs().max(1e-9).log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_go_around_the_values() {
        assert_eq!(linear_ticks(4400.0), [0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0]);
        assert_eq!(linear_ticks(3.8), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(log_ticks(3.0, 40.0), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(log_ticks(70.0, 54000.0), [10.0, 100.0, 1000.0, 10000.0, 100_000.0]);
        assert_eq!(
            ["0", "0.5", "50", "1000", "10^5"],
            [0.0, 0.5, 50.000_000_1, 999.999_9, 100_000.0].map(number).each_ref().map(String::as_str)
        );
    }
}
