package tool

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

const updateSchema = `{"type":"object","properties":{
	"taskId":{"type":"string"},"subject":{"type":"string"},
	"status":{"anyOf":[{"type":"string","enum":["pending","in_progress","completed"]},{"type":"string","const":"deleted"}]},
	"addBlocks":{"type":"array","items":{"type":"string"}},
	"metadata":{"type":"object","propertyNames":{"type":"string"},"additionalProperties":{}}
	},"required":["taskId"],"additionalProperties":false}`

const outputSchema = `{"type":"object","properties":{
	"task_id":{"type":"string"},"block":{"default":true,"type":"boolean"},
	"timeout":{"default":30000,"type":"number","minimum":0,"maximum":600000},
	"turns":{"type":"integer","exclusiveMinimum":0},
	"mode":{"type":"string","enum":["plan","default"]}
	},"required":["task_id","block","timeout"],"additionalProperties":false}`

const askSchema = `{"type":"object","properties":{"questions":{"minItems":1,"maxItems":4,"type":"array","items":{
	"type":"object","properties":{
		"question":{"type":"string"},"header":{"type":"string","minLength":2},
		"options":{"minItems":2,"maxItems":4,"type":"array","items":{"type":"object","properties":{
			"label":{"type":"string"},"description":{"type":"string"}},"required":["label","description"],"additionalProperties":false}},
		"multiSelect":{"default":false,"type":"boolean"}},
	"required":["question","header","options","multiSelect"],"additionalProperties":false}},
	"answers":{"type":"object","additionalProperties":{"type":"string"}}},
	"required":["questions"],"additionalProperties":false}`

func TestNormalizeRefuses(t *testing.T) {
	union := `InputValidationError: [
  {
    "code": "invalid_union",
    "errors": [
      [
        {
          "code": "invalid_value",
          "values": [
            "pending",
            "in_progress",
            "completed"
          ],
          "path": [],
          "message": "Invalid option: expected one of \"pending\"|\"in_progress\"|\"completed\""
        }
      ],
      [
        {
          "code": "invalid_value",
          "values": [
            "deleted"
          ],
          "path": [],
          "message": "Invalid input: expected \"deleted\""
        }
      ]
    ],
    "path": [
      "status"
    ],
    "message": "Invalid input"
  }
]`
	if len(union) != 661 { // the length that golden t1 tells of the cut text
		t.Fatalf("the expected text has %d characters", len(union))
	}
	const one = "InputValidationError: T failed due to the following issue:\n"
	const more = "InputValidationError: T failed due to the following issues:\n"
	tests := []struct{ name, schema, input, want string }{
		{"missing", updateSchema, `{}`, one + "The required parameter `taskId` is missing"},
		{"wrong type", updateSchema, `{"taskId":1}`, one + "The parameter `taskId` type is expected as `string` but provided as `number`"},
		{"unexpected", updateSchema, `{"taskId":"1","extra":"x"}`, one + "An unexpected parameter `extra` was provided"},
		{"null for required", updateSchema, `{"taskId":null}`, one + "The parameter `taskId` type is expected as `string` but provided as `null`"},
		{"not an object", updateSchema, `["x"]`, one + "The parameter `input` type is expected as `object` but provided as `array`"},
		{"union", updateSchema, `{"taskId":"1","status":"weird"}`, union},
		{"several", updateSchema, `{"subject":2,"b":1,"a":1,"status":"x"}`, more +
			"The required parameter `taskId` is missing\n" +
			"An unexpected parameter `b` was provided\n" +
			"An unexpected parameter `a` was provided\n" +
			"The parameter `subject` type is expected as `string` but provided as `number`\n" +
			"The parameter `status` is not valid: Invalid input"},
		{"nested item", updateSchema, `{"taskId":"1","addBlocks":["2",3]}`, one + "The parameter `addBlocks[1]` type is expected as `string` but provided as `number`"},
		{"deeply nested", askSchema, `{"questions":[{"question":"q","header":"hh","options":[{"label":"a","description":"d"},{"label":"b","x":1}]}]}`,
			more + "The required parameter `questions[0].options[1].description` is missing\nAn unexpected parameter `questions[0].options[1].x` was provided"},
		{"number too big", outputSchema, `{"task_id":"1","timeout":600001}`, "InputValidationError: [\n  {\n    \"origin\": \"number\",\n    \"code\": \"too_big\",\n    \"maximum\": 600000,\n    \"inclusive\": true,\n    \"path\": [\n      \"timeout\"\n    ],\n    \"message\": \"Too big: expected number to be <=600000\"\n  }\n]"},
		{"number too small", outputSchema, `{"task_id":"1","turns":0,"x":1}`, more + "An unexpected parameter `x` was provided\nThe parameter `turns` is not valid: Too small: expected number to be >0"},
		{"fraction for integer", outputSchema, `{"task_id":"1","turns":1.5}`, one + "The parameter `turns` type is expected as `integer` but provided as `number`"},
		{"no number in the string", outputSchema, `{"task_id":"1","timeout":"5 s"}`, one + "The parameter `timeout` type is expected as `number` but provided as `string`"},
		{"number out of range", outputSchema, `{"task_id":"1","timeout":1e999}`, one + "The parameter `timeout` type is expected as `number` but provided as `number out of range`"},
		{"too few items", askSchema, `{"questions":[],"x":1}`, more + "An unexpected parameter `x` was provided\nThe parameter `questions` is not valid: Too small: expected array to have >=1 items"},
		{"invalid JSON", updateSchema, `{"invalid_json":"{\"taskId\": \"1"}`, one + "The input is not a valid JSON object: `{\"taskId\": \"1`\nNothing was run. Send the call again with complete JSON."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewSchema(tt.schema).Normalize("T", json.RawMessage(tt.input))
			var wrong *InputError
			if !errors.As(err, &wrong) {
				t.Fatalf("error is %v, want an InputError", err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNormalizePutsRight(t *testing.T) {
	tests := []struct{ name, schema, input, want string }{
		{"as it is", updateSchema, ` {"taskId" : "1"} `, ` {"taskId" : "1"} `},
		{"empty", `{"type":"object","properties":{}}`, ``, `{}`},
		{"null", `{"type":"object","properties":{}}`, `null`, `{}`},
		{"number in a string", outputSchema, `{"task_id":"1","block":true,"timeout":" 5 "}`, `{"task_id":"1","block":true,"timeout":5}`},
		{"integer in a string", outputSchema, `{"task_id":"1","block":true,"timeout":5,"turns":"3"}`, `{"task_id":"1","block":true,"timeout":5,"turns":3}`},
		{"integer with a fraction of zero", outputSchema, `{"task_id":"1","block":true,"timeout":5,"turns":3.0}`, `{"task_id":"1","block":true,"timeout":5,"turns":3}`},
		{"boolean in a string", outputSchema, `{"task_id":"1","block":"False","timeout":5}`, `{"task_id":"1","block":false,"timeout":5}`},
		{"defaults of required parameters", outputSchema, `{"task_id":"1"}`, `{"task_id":"1","block":true,"timeout":30000}`},
		{"null for optional", updateSchema, `{"subject":null,"taskId":"1"}`, `{"taskId":"1"}`},
		{"list in a string", updateSchema, `{"taskId":"1","addBlocks":"[\"2\"]"}`, `{"taskId":"1","addBlocks":["2"]}`},
		{"object in a string", updateSchema, `"{\"taskId\":\"1\"}"`, `{"taskId":"1"}`},
		{"a string stays a string", updateSchema, `{"taskId":"12"}`, `{"taskId":"12"}`},
		{"null inside open metadata stays", updateSchema, `{"taskId":"1","metadata":{"k":null}}`, `{"taskId":"1","metadata":{"k":null}}`},
		{"union", updateSchema, `{"taskId":"1","status":"deleted"}`, `{"taskId":"1","status":"deleted"}`},
		{"a parameter that is called invalid_json", `{"type":"object","properties":{"invalid_json":{"type":"string"}}}`, `{"invalid_json":"x"}`, `{"invalid_json":"x"}`},
		{"union prefers what needs no change", `{"type":"object","properties":{"v":{"anyOf":[{"type":"number"},{"type":"string"}]}}}`, `{"v":"5"}`, `{"v":"5"}`},
		{"union after coercion", `{"type":"object","properties":{"v":{"anyOf":[{"type":"number"},{"type":"boolean"}]}}}`, `{"v":"true"}`, `{"v":true}`},
		{"nullable", `{"type":"object","properties":{"v":{"type":["string","null"]}}}`, `{"v":null}`, `{"v":null}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := NewSchema(tt.schema).Normalize("T", json.RawMessage(tt.input))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestNormalizeShortensUnreadableInput(t *testing.T) {
	long, err := json.Marshal(map[string]string{"invalid_json": `{"content":"` + strings.Repeat("é", 100_000)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewSchema(updateSchema).Normalize("Write", long)
	if err == nil {
		t.Fatal("no error")
	}
	if text := err.Error(); len(text) > 1200 || !strings.Contains(text, "several smaller calls") || !strings.Contains(text, `{"content":"éé`) {
		t.Errorf("text of %d bytes: %s", len(text), text)
	}
}

func TestNormalizeNamesABrokenSchema(t *testing.T) {
	_, err := NewSchema(`{"type":5}`).Normalize("Odd", json.RawMessage(`{}`))
	var wrong *InputError
	if err == nil || errors.As(err, &wrong) || !strings.Contains(err.Error(), "Odd: parse input schema") {
		t.Errorf("error is %v", err)
	}
}

// FuzzNormalize holds the walk against an independent validator: what comes out
// without an error is valid, stays as it is when it goes in again, and valid
// input is never refused.
func FuzzNormalize(f *testing.F) {
	schemas := []string{updateSchema, outputSchema, askSchema}
	for i := range schemas {
		for _, input := range []string{
			`{}`, `{"taskId":"1","status":"pending","metadata":{"a":[1,{}]}}`, `{"task_id":"x","timeout":"1e3","turns":2.0}`,
			`{"questions":[{"question":"q","header":"hh","options":"[]","multiSelect":"true"}]}`, `"{}"`, `[`, `{"a":1,"a":2}`,
			`{"taskId":"1","status":null,"addBlocks":[null]}`, "{\"taskId\":\"\xff\"}", `{"invalid_json":"{"}`,
		} {
			f.Add(i, []byte(input))
		}
	}
	oracles := make([]*jsonschema.Resolved, len(schemas))
	for i, text := range schemas {
		var s jsonschema.Schema
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			f.Fatal(err)
		}
		var err error
		if oracles[i], err = s.Resolve(nil); err != nil {
			f.Fatal(err)
		}
	}
	valid := func(oracle *jsonschema.Resolved, input []byte) bool {
		var v any
		return json.Unmarshal(input, &v) == nil && oracle.Validate(v) == nil
	}
	f.Fuzz(func(t *testing.T, which int, input []byte) {
		if which < 0 || which >= len(schemas) {
			return
		}
		s, oracle := NewSchema(schemas[which]), oracles[which]
		out, err := s.Normalize("T", input)
		if err != nil {
			if valid(oracle, input) {
				t.Fatalf("valid input %q refused: %v", input, err)
			}
			return
		}
		if !valid(oracle, out) {
			t.Fatalf("%q became %q, which is not valid", input, out)
		}
		again, err := s.Normalize("T", out)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%q became %q and then %q, %v", input, out, again, err)
		}
	})
}
