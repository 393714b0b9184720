//! `weather_report`: an enumerated argument and structured output.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{CallToolResponse, CallToolResult, ErrorData, Tool};
use serde::Deserialize;
use serde_json::json;

use super::{DemoCall, DemoServer, DemoTool};

pub(super) struct WeatherReport;

#[derive(Deserialize)]
struct Arguments {
    city: City,
    #[serde(default)]
    units: Units,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum City {
    Lima,
    Nairobi,
    Oslo,
    Tokyo,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Units {
    #[default]
    Celsius,
    Fahrenheit,
}

impl City {
    /// Name, sky and degrees Celsius. Made up, and the description says so.
    fn weather(self) -> (&'static str, &'static str, i32) {
        match self {
            Self::Lima => ("Lima", "fog", 18),
            Self::Nairobi => ("Nairobi", "sunny", 24),
            Self::Oslo => ("Oslo", "snow", -4),
            Self::Tokyo => ("Tokyo", "rain", 12),
        }
    }
}

#[async_trait]
impl DemoTool for WeatherReport {
    fn definition(&self) -> Tool {
        let input = json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "enum": ["lima", "nairobi", "oslo", "tokyo"] },
                "units": {
                    "type": "string",
                    "enum": ["celsius", "fahrenheit"],
                    "default": "celsius",
                },
            },
            "required": ["city"],
            "additionalProperties": false,
        });
        let output = json!({
            "type": "object",
            "properties": {
                "city": { "type": "string" },
                "sky": { "type": "string", "enum": ["fog", "rain", "snow", "sunny"] },
                "temperature": { "type": "integer" },
                "units": { "type": "string", "enum": ["celsius", "fahrenheit"] },
            },
            "required": ["city", "sky", "temperature", "units"],
        });
        super::tool(
            "weather_report",
            "Weather report",
            "Reports made-up weather of four cities, as structured output",
            input,
        )
        .with_raw_output_schema(Arc::new(super::object(output)))
        .with_annotations(super::read_only())
    }

    async fn call(
        &self,
        _server: &DemoServer,
        call: DemoCall,
    ) -> Result<CallToolResponse, ErrorData> {
        let Arguments { city, units } = match call.arguments() {
            Ok(arguments) => arguments,
            Err(reason) => return Ok(super::error_result(reason.to_string())),
        };
        let (city, sky, celsius) = city.weather();
        let (temperature, units) = match units {
            Units::Celsius => (celsius, "celsius"),
            Units::Fahrenheit => (celsius * 9 / 5 + 32, "fahrenheit"),
        };
        let report =
            json!({ "city": city, "sky": sky, "temperature": temperature, "units": units });
        Ok(CallToolResult::structured(report).into())
    }
}
