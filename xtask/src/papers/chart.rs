//! Line charts as SVG.

use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One or several panels side by side, with one legend.
pub struct Chart {
    /// Left to right.
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

const PANEL: (u32, u32) = (470, 380);
const LEGEND_ROW: i32 = 21;
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
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as u32;
        let legend = 50 + longest * 7;
        let width = PANEL.0 * self.panels.len() as u32;
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, (width + legend, PANEL.1)).into_drawing_area();
            area.fill(&WHITE).map_err(failed)?;
            let (left, right) = area.split_horizontally(width);
            for (area, panel) in left.split_evenly((1, self.panels.len())).iter().zip(&self.panels) {
                panel.draw(area, &names)?;
            }
            for (i, name) in names.iter().enumerate() {
                let y = 50 + i as i32 * LEGEND_ROW;
                let colour = colour(i);
                right.draw(&PathElement::new([(4, y), (30, y)], colour.stroke_width(2))).map_err(failed)?;
                right.draw(&mark(i, (17, y))).map_err(failed)?;
                let style =
                    ("sans-serif", 13).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
                right.draw(&Text::new((*name).to_owned(), (37, y), style)).map_err(failed)?;
            }
            area.present().map_err(failed)?;
        }
        text.push('\n');
        Ok(text)
    }
}

impl Panel {
    fn draw(&self, area: &DrawingArea<SVGBackend, plotters::coord::Shift>, names: &[&str]) -> Result<()> {
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
        // A letter is about 7 wide, and names stand 8 apart.
        let widest = self.places.iter().map(String::len).max().unwrap_or(0) * 7 + 8;
        let every = (self.places.len() * widest).div_ceil(380);
        let marked: Vec<f64> = (0..=last).step_by(every).map(|place| place as f64).collect();
        let margin = last as f64 * 0.03;
        let x = Axis { range: -margin..last as f64 + margin, ticks: marked };
        let y = Axis { range: bottom..top, ticks: ticks.iter().map(|tick| scaled(*tick)).collect() };

        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 15).into_font().color(&BLACK))
            .margin(6)
            .margin_right(14)
            .x_label_area_size(44)
            .y_label_area_size(66)
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        let place = |x: &f64| self.places.get(x.round() as usize).cloned().unwrap_or_default();
        let value = |y: &f64| number(if self.log { 10f64.powf(*y) } else { *y });
        chart
            .configure_mesh()
            .bold_line_style(RGBColor(222, 222, 222))
            .light_line_style(RGBColor(222, 222, 222))
            .axis_style(GREY)
            .label_style(("sans-serif", 12).into_font().color(&BLACK))
            .axis_desc_style(("sans-serif", 13).into_font().color(&BLACK))
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
            ["0", "0.5", "50", "1000", "100000"],
            [0.0, 0.5, 50.000_000_1, 999.999_9, 100_000.0].map(number).each_ref().map(String::as_str)
        );
    }
}
