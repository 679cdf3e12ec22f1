// node check.js SCHEMA.json < compose.json: prints what is wrong with it, a line each; exit 1 when something is.
const fs = require("fs");
const Ajv = require("ajv/dist/2019");
const schema = JSON.parse(fs.readFileSync(process.argv[2]));
delete schema.$schema; // an address of the draft that ajv has under another one
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
ajv.removeKeyword("id"); // an older draft's name, which the schema still has beside its definitions
const validate = ajv.compile(schema);
if (!validate(JSON.parse(fs.readFileSync(0)))) {
  for (const each of validate.errors) console.log(`${each.instancePath}: ${each.message}`);
  process.exit(1);
}
