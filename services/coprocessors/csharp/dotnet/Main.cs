using System;
using System.IO;
using Coprocessor;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
using Newtonsoft.Json.Linq;

// The coprocessor in C# on ASP.NET: entry, port and stop. ../../CONTRACT.md says what it does.
string Variable(string name, string otherwise) => Environment.GetEnvironmentVariable(name) ?? otherwise;

var builder = WebApplication.CreateSlimBuilder();
builder.Logging.SetMinimumLevel(LogLevel.Warning);
builder.Services.Configure<HostOptions>(options => options.ShutdownTimeout = TimeSpan.FromSeconds(9));
builder.WebHost.ConfigureKestrel(options =>
{
    options.AddServerHeader = false;
    options.Limits.MaxRequestBodySize = Message.BodyLimit;
    string path = Variable("SOCKET", "");
    if (path != "")
    {
        // What a killed predecessor left behind would be in the way.
        File.Delete(path);
        options.ListenUnixSocket(path);
    }
    else
    {
        options.ListenAnyIP(int.Parse(Variable("PORT", "3000")));
    }
});

var app = builder.Build();
var keys = new Keys(Variable("JWT_SECRET", "apollo"));
app.MapPost("/static-subgraph", Answer(message => Decision.Decide(Endpoint.StaticSubgraph, message, keys)));
app.MapPost("/guid-response", Answer(message => Decision.Decide(Endpoint.GuidResponse, message, keys)));
app.MapPost("/client-awareness", Answer(message => Decision.Decide(Endpoint.ClientAwareness, message, keys)));
app.MapPost("/create-jwt", Answer(keys.Create));
app.MapGet("/health", (RequestDelegate)(context => Reply(context, new JObject(new JProperty("status", "UP")))));
app.Run();

static RequestDelegate Answer(Func<JObject, JObject> decision) => async context =>
{
    var body = new MemoryStream();
    await context.Request.Body.CopyToAsync(body);
    string mistake = Message.Read(body.GetBuffer(), (int)body.Length, out JObject message);
    if (mistake == null)
    {
        await Reply(context, decision(message));
        return;
    }
    context.Response.StatusCode = StatusCodes.Status400BadRequest;
    await context.Response.WriteAsync(mistake);
};

static async System.Threading.Tasks.Task Reply(HttpContext context, JObject message)
{
    byte[] bytes = Message.Write(message);
    context.Response.ContentType = "application/json";
    context.Response.ContentLength = bytes.Length;
    await context.Response.Body.WriteAsync(bytes);
}
