//! Whatever values, names and axes a chart is given, its markup is well formed, and everything in it lies within the plot.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use roxmltree::{Document, Node};
use virtbench_chart::{
    Axis, Cell, Chart, Colours, Dash, Form, HeatMap, Look, Name, Point, Rule, Scale, Series, Shape, look,
};

const NAME: Name<'static> =
    Name { id: "any", title: "any <title> & \"more\"", description: "what's to be seen \u{1b}[1m" };

/// Values as measurements have them, and as only a fault has them.
fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1e6..1e6,
        4 => 0.0..1.0,
        2 => any::<f64>(),
        1 => prop::sample::select(vec![0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324]),
    ]
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{1,8}",
        1 => Just("</title><script>alert(1)</script>\"'&".to_owned()),
        1 => Just("a name that is far too long to stand beside anything ".repeat(20)),
        1 => any::<String>(),
    ]
}

fn any_axis() -> impl Strategy<Value = Axis> {
    let scale = prop_oneof![
        Just(Scale::Linear),
        Just(Scale::FromZero),
        Just(Scale::Whole),
        Just(Scale::Logarithmic),
        prop::collection::vec(any_name(), 0..6).prop_map(Scale::Categories),
    ];
    let range = prop::option::weighted(0.3, [any_value(), any_value()]);
    let ticks = prop::collection::vec((any_value(), any_name()), 0..4);
    (any_name(), scale, range, prop::option::weighted(0.2, ticks)).prop_map(|(title, scale, range, ticks)| {
        Axis { title, scale, range, ticks: ticks.unwrap_or_default() }
    })
}

fn any_look() -> impl Strategy<Value = Look> {
    let shape = prop::sample::select(vec![
        Shape::Circle,
        Shape::Square,
        Shape::Diamond,
        Shape::Triangle,
        Shape::Cross,
    ]);
    let dash = prop::sample::select(vec![Dash::Solid, Dash::Dashed, Dash::Dotted, Dash::Mixed]);
    (any::<u8>(), shape, dash)
        .prop_map(|(colour, shape, dash)| Look::of_colour(colour).shaped(shape).dashed(dash))
}

fn any_series() -> impl Strategy<Value = Series> {
    let form = prop::sample::select(vec![
        Form::Line,
        Form::Marked,
        Form::Marks,
        Form::Bars,
        Form::Stack,
        Form::Spans,
    ]);
    // Small whole numbers are places of categories.
    let place = || prop_oneof![(0u8..6).prop_map(f64::from), any_value()];
    let interval = prop::option::of([any_value(), any_value()]);
    let text = || prop_oneof![2 => Just(String::new()), 1 => any_name()];
    let point = (place(), place(), interval, text(), text())
        .prop_map(|(x, y, interval, hover, label)| Point { x, y, interval, hover, label });
    (any_name(), any_look(), form, prop::collection::vec(point, 0..12))
        .prop_map(|(name, look, form, points)| Series { name, look, form, points })
}

fn any_chart() -> impl Strategy<Value = Chart> {
    let rule = (any_value(), any_name(), any_look()).prop_map(|(at, label, look)| Rule { at, label, look });
    (
        any_axis(),
        any_axis(),
        prop::collection::vec(any_series(), 0..5),
        prop::collection::vec(rule, 0..4),
        prop::collection::vec([any_value(), any_value()], 0..3),
        any_value(),
    )
        .prop_map(|(x, y, series, rules, bands, height_px)| Chart {
            x,
            y,
            series,
            rules,
            bands,
            height_px,
        })
}

/// A place in percent of the width, or in pixels.
fn number(text: &str) -> f64 {
    text.trim_end_matches('%').parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// Everything that marks a value lies between nothing and all of the plot's width and height.
fn assert_inside(node: Node<'_, '_>, height: f64) {
    for attribute in node.attributes() {
        let value = attribute.value();
        assert!(!value.contains("NaN") && !value.contains("inf"), "{}={value:?}", attribute.name());
        let within = |most: f64| {
            let found = number(value);
            assert!((-0.1..=most + 0.1).contains(&found), "{}={value:?} of {most}", attribute.name());
        };
        match attribute.name() {
            "x" | "x1" | "x2" | "cx" | "width" if value.ends_with('%') => within(100.0),
            "cy" => within(height),
            "points" => {
                for (x, y) in value.split(' ').map(|pair| pair.split_once(',').unwrap()) {
                    assert!(
                        (-0.1..=1000.1).contains(&number(x)) && (-0.1..=height + 0.1).contains(&number(y)),
                        "{value}"
                    );
                }
            }
            _ => {}
        }
    }
}

/// Pixels of the plot: the whole height less the padding.
fn plot_height(root: Node<'_, '_>) -> f64 {
    let style = root.attribute("style").unwrap();
    let part =
        |begin: &str| style.split_once(begin).unwrap().1.split("px").next().unwrap().parse::<f64>().unwrap();
    let padding = style.split_once("padding:").unwrap().1;
    let below: f64 = padding.split("px ").nth(2).unwrap().parse().unwrap();
    part("height:") - part("padding:") - below
}

fn assert_sound(svg: &str) {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}:\n{svg}"));
    let root = document.root_element();
    assert_eq!((root.tag_name().name(), root.attribute("role")), ("svg", Some("img")));
    let ids: Vec<&str> = root.descendants().filter_map(|node| node.attribute("id")).collect();
    assert_eq!(root.attribute("aria-labelledby"), Some(ids.join(" ").as_str()));
    // The padding is in whole pixels.
    let height = plot_height(root) + 1.0;
    assert!(height > 10.0 && height.is_finite());
    root.descendants().for_each(|node| assert_inside(node, height));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_chart_is_well_formed_and_inside_its_plot(chart in any_chart()) {
        assert_sound(&chart.svg(&NAME));
        for entry in chart.key() {
            Document::parse(&entry.sample()).unwrap();
        }
    }

    #[test]
    fn any_heat_map_is_well_formed(
        rows in prop::collection::vec(any_name(), 0..5),
        columns in prop::collection::vec(any_name(), 0..5),
        values in prop::collection::vec(prop::collection::vec(prop::option::of(any_value()), 0..6), 0..6),
        scale in prop::collection::vec(any_name(), 0..4),
        most in any_value(),
        kind in 0usize..3,
    ) {
        let cell = |value: Option<f64>| Cell { value, text: format!("{value:?}"), hover: format!("<{value:?}>") };
        let map = HeatMap {
            x_title: columns.concat(),
            y_title: rows.concat(),
            columns,
            rows,
            cells: values.into_iter().map(|row| row.into_iter().map(cell).collect()).collect(),
            colours: [Colours::Amount(most), Colours::Excess(most), Colours::Ratio(most)][kind],
            scale,
        };
        assert_sound(&map.svg(&NAME));
    }
}

fn line(points: impl Iterator<Item = (f64, f64)>) -> Chart {
    let points = points.map(|(x, y)| Point::new(x, y)).collect();
    let series = Series { name: "a".into(), look: look(0), form: Form::Line, points };
    Chart { series: vec![series], ..Chart::new(Axis::from_zero("x"), Axis::from_zero("y")) }
}

#[test]
fn ten_thousand_points_are_drawn_in_a_tenth_of_their_size() {
    let noise = |x: u32| f64::from(x.wrapping_mul(2_654_435_761) >> 20);
    let svg = line((0..10_000).map(|x| (f64::from(x), noise(x)))).svg(&NAME);
    assert_sound(&svg);
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    let mut marks = line((0..10_000).map(|x| (f64::from(x), noise(x))));
    marks.series[0].form = Form::Marks;
    let svg = marks.svg(&NAME);
    assert_sound(&svg);
    assert!(svg.len() < 200_000, "{} bytes", svg.len());
}

#[test]
fn what_is_missing_breaks_a_line() {
    let svg = line([(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 2.0)].into_iter()).svg(&NAME);
    assert_eq!(svg.matches("<polyline").count(), 2);
    assert!(!line([(0.0, 1.0)].into_iter()).svg(&NAME).contains("<polyline"), "a single point is no line");
}

#[test]
fn rows_hold_bars_beside_each_other_behind_each_other_and_their_labels() {
    let bar = |form: Form, x: f64| Series {
        name: String::new(),
        look: look(0),
        form,
        points: vec![
            Point::new(x, 0.0).between(Some([x - 1.0, x + 1.0])).label(format!("{x} MB/s")).hover("a bar"),
        ],
    };
    let rows = Axis::categories("", vec!["one <row>".into()]);
    let chart = |series| Chart { series, ..Chart::new(Axis::from_zero(""), rows.clone()) }.svg(&NAME);
    let svg = chart(vec![bar(Form::Bars, 4.0), bar(Form::Bars, 8.0)]);
    for part in ["width=\"40%\"", "width=\"80%\"", "8 MB/s", "one &lt;row&gt;", "<title>a bar</title>"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let svg = chart(vec![bar(Form::Stack, 4.0), bar(Form::Stack, 6.0)]);
    assert!(svg.contains("x=\"0%\"") && svg.contains("x=\"40%\"") && svg.contains("width=\"60%\""), "{svg}");
}
