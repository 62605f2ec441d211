// Why requests carry no numbers, in sentences, and what to do about it. docs/metrics.md has a line for each reason.

export const REASONS = {
  n_gt_1: 'asked for several sequences (n > 1); vLLM then tells nothing',
  multi_prompt: 'had several prompts in one request; vLLM then tells nothing',
  stop_string: 'ended at a stop string; vLLM then leaves the numbers out (a stop token keeps them)',
  beam_search: 'used beam search, which does not speculate',
  aborted: 'were aborted by the engine',
  cancelled: 'were left by the client before the numbers came',
  truncated: 'were cut because the engine went away',
  no_usage_event: 'ended without the usage event that carries the numbers',
  level_off: 'came from an engine that has never told any',
  not_drafted: 'had nothing drafted for them',
  prefill_leg: 'were the prefill half of a split request',
  route_without_payload: 'used a route on which the engine tells no numbers',
  inject_off: 'did not ask for usage, and injection is switched off',
  inject_skipped: 'were sent on as they came, without asking the engine for its numbers',
  error_event: 'carried an error',
  unknown: 'carried none for a reason that can not be seen',
  encoding: 'have a content coding that is not read',
  not_json: 'are not the JSON that their route should give',
  event_too_large: 'have an event larger than 1 MiB',
  observer_failed: 'made the observer fail; they passed on untouched',
  ambiguous_signature: 'have the marks of more than one engine',
  two_payloads: 'have two sets of numbers for one sequence',
  identity_sum: 'have a histogram that does not add up to the steps',
  identity_weighted: 'have a histogram that does not give the accepted count',
  identity_per_step: 'have a per-step list that contradicts the counts',
  accepted_gt_drafted: 'say that more was accepted than drafted',
  histogram_length: 'have a histogram that is not k + 1 long',
  zero_steps_with_drafts: 'have drafts without a step',
  bad_number: 'have a number that is missing or is none',
};

const VLLM = '--per-request-spec-decode-metrics summary';
export const REMEDIES = {
  level_off: [
    ['vLLM: start it with ', VLLM, ' (and with a speculative config).'],
    ['TensorRT-LLM: set ', 'per_request_spec_decode_stats: true', ' in its YAML.'],
    ['SGLang: nothing to set there; name it with ', '--engine sglang', ', so that spectap asks it in each request.'],
    ['Behind Dynamo the numbers are stripped: put spectap between Dynamo and the engine.'],
  ],
  inject_off: [['Switch injection on: ', 'POST /api/v1/inject {"enabled":true}', ', or start spectap with ', '--inject auto', '.']],
  inject_skipped: [['The requests could not be altered safely. For SGLang requests that are not streamed: ', '--inject-sglang-unary', '.']],
  no_usage_event: [['Let clients send ', 'stream_options.include_usage: true', ', or leave injection on.']],
  n_gt_1: [['Send n requests instead of one with ', 'n', ' where you measure.']],
  stop_string: [['Use ', 'stop_token_ids', ' where you measure.']],
  encoding: [['Let clients send ', 'Accept-Encoding: gzip', ' or none.']],
};
