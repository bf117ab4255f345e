// A review and what an op does to it: the browser's half of the ledger's rules, pure. `reviewer/ops.py` is the other half;
// a test runs both over the same ops.
// Inside, a review is a flat state of addressed fields: "status", "outcome", "first_error", "spans/<id>",
// "step_labels/<i>", "notes/<run|i>", "better_actions/<i>". A field that is not set is absent.

const GROUPS = ["step_labels", "notes", "better_actions"];

export function emptyReview(trajectoryId, reviewer) {
  return { trajectory_id: trajectoryId, reviewer, rev: 0, status: "unreviewed", outcome: null, spans: [], step_labels: {}, first_error: null, first_error_label: null, notes: {}, better_actions: {}, updated_utc: null };
}

export function toState(review) {
  const state = {};
  for (const field of ["status", "outcome"]) if (review[field] != null) state[field] = review[field];
  if (review.first_error) state.first_error = { ...review.first_error, ...review.first_error_label };
  for (const { span_id: id, ...span } of review.spans) state[`spans/${id}`] = span;
  for (const group of GROUPS) for (const [key, value] of Object.entries(review[group])) state[`${group}/${key}`] = value;
  return state;
}

export function toReview(state, review) {
  const { replaced, ...mark } = state.first_error ?? {};
  const result = {
    ...review, status: state.status, outcome: state.outcome ?? null, spans: [], step_labels: {}, notes: {}, better_actions: {},
    first_error: state.first_error ? mark : null, first_error_label: replaced === undefined ? null : { replaced },
  };
  for (const [field, value] of Object.entries(state)) {
    const slash = field.indexOf("/");
    if (slash < 0) continue;
    const [group, key] = [field.slice(0, slash), field.slice(slash + 1)];
    if (group === "spans") result.spans.push({ span_id: key, ...value });
    else result[group][key] = value;
  }
  result.spans.sort((a, b) => a.start_s - b.start_s || a.end_s - b.end_s || (a.span_id < b.span_id ? -1 : 1));
  return result;
}

function withFields(state, fields) {
  const result = { ...state, ...fields };
  for (const [field, value] of Object.entries(fields)) if (value == null) delete result[field];
  return result;
}

/** A label given by the person, or taken from a judge, no longer goes away with the first-error mark. */
function ownLabel(state, labelled) {
  const mark = state.first_error;
  if (!mark || !labelled.includes(`step_labels/${mark.step_index}`)) return state;
  return withFields(state, { first_error: { step_index: mark.step_index, reason: mark.reason } });
}

/** A first error whose step is no longer `-` is none. */
function consistent(state) {
  const mark = state.first_error;
  return !mark || state[`step_labels/${mark.step_index}`]?.label === "-" ? state : withFields(state, { first_error: null });
}

const EFFECTS = {
  set_outcome: (state, op) => withFields(state, { outcome: op.value }),
  put_span: (state, op) => withFields(state, { [`spans/${op.span_id}`]: { start_s: op.start_s, end_s: op.end_s, reason: op.reason ?? "" } }),
  delete_span: (state, op) => withFields(state, { [`spans/${op.span_id}`]: null }),
  label_step: (state, op) => {
    const field = `step_labels/${op.step_index}`;
    return ownLabel(withFields(state, { [field]: op.label === null ? null : { label: op.label, reason: op.reason ?? "" } }), [field]);
  },
  set_first_error: setFirstError,
  set_note: (state, op) => withFields(state, { [`notes/${op.step_index ?? "run"}`]: op.text || null }),
  set_better_action: (state, op) => withFields(state, { [`better_actions/${op.step_index}`]: op.action }),
  submit: (state) => withFields(state, { status: "submitted" }),
  reopen: (state) => withFields(state, { status: "in_progress" }),
  accept: (state, op, known) => {
    const fields = acceptedFields(known.judgements?.find((judgement) => judgement.id === op.judgement_id), state);
    return ownLabel(withFields(state, fields), Object.keys(fields));
  },
  undo: (state, op, known) => withFields(state, Object.fromEntries((known.changesOf?.(op.undoes) ?? []).map(({ field, from }) => [field, from]))),
};

function setFirstError(before, op) {
  const mark = before.first_error;
  const state = mark && "replaced" in mark ? withFields(before, { [`step_labels/${mark.step_index}`]: mark.replaced }) : before;
  if (op.step_index === null) return withFields(state, { first_error: null });
  const field = `step_labels/${op.step_index}`;
  const placed = { step_index: op.step_index, reason: op.reason ?? "" };
  if (state[field]?.label === "-") return withFields(state, { first_error: placed });
  return withFields(state, { first_error: { ...placed, replaced: state[field] ?? null }, [field]: { label: "-", reason: placed.reason } });
}

function acceptedFields(judgement, state) {
  const fields = {};
  if (judgement?.outcome) fields.outcome = judgement.outcome;
  (judgement?.spans ?? []).forEach((span, k) => { fields[`spans/${judgement.id}.${k}`] = { start_s: span.start_s, end_s: span.end_s, reason: span.reason ?? "" }; });
  for (const item of judgement?.step_labels ?? []) fields[`step_labels/${item.step_index}`] = { label: item.label, reason: item.reason ?? "" };
  const wrong = (judgement?.step_labels ?? []).filter((item) => item.label === "-").sort((a, b) => a.step_index - b.step_index)[0];
  if (wrong && !state.first_error) fields.first_error = { step_index: wrong.step_index, reason: wrong.reason ?? "" };
  return fields;
}

/** The state after `op`. `known` gives judgements (for accept) and the changes of past ops (for undo). */
function after(state, op, known) {
  const begun = { ...state, status: state.status === "unreviewed" ? "in_progress" : state.status };
  return consistent(EFFECTS[op.type](begun, op, known));
}

const same = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

/** What turns one state into another; the step out of `unreviewed` is nobody's change. */
function difference(before, now) {
  const from = { ...before, status: before.status === "unreviewed" ? "in_progress" : before.status };
  return [...new Set([...Object.keys(from), ...Object.keys(now)])].sort()
    .filter((field) => !same(from[field], now[field]))
    .map((field) => ({ field, from: from[field] ?? null, to: now[field] ?? null }));
}

/** The review after `op`. */
export function applyOp(review, op, known = {}) {
  return toReview(after(toState(review), op, known), review);
}

/** What `op` changes in `review`, as {field, from, to}: only fields that end up different. */
export function changesOf(op, review, known = {}) {
  const state = toState(review);
  return difference(state, after(state, op, known));
}

/** What a step shows: its label, whether it is the first error, or `after_error` by the first error before it. */
export function stepState(review, index) {
  const given = review.step_labels[index];
  const firstError = review.first_error;
  const isFirstError = firstError?.step_index === index;
  return {
    label: given?.label ?? null,
    isFirstError,
    afterError: !given && firstError != null && index > firstError.step_index,
    reason: (isFirstError && firstError.reason) || given?.reason || "",
    note: review.notes[index] ?? "",
  };
}
