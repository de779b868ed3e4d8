models=$(dirname "$(llm logs path)")/extra-openai-models.yaml
grep -qs "model_id: shepherd" "$models" || cat >> "$models" <<EOF
- model_id: shepherd
  model_name: gpt-5
  api_base: $OPENAI_BASE_URL
  api_key_name: shepherd
EOF
llm keys set shepherd --value "$OPENAI_API_KEY"
llm -m shepherd "$1"
